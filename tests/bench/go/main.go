// The Go reference: what a plain Go proxy does (httputil.ReverseProxy, an SSE transport, bufio.Scanner per line, a
// substring prefilter, encoding/json on relevant lines). Measured against, never shipped.
package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

var errSSEHandled = errors.New("sse handled")
var flushMode = flag.String("flush", "line", "line|event: when streamingResponseWriter flushes")
var innerFile = flag.String("inner", "", "bench the inner loop alone on this file")
var usePolicy = flag.Bool("policy", true, "policy configured; false = io.Copy fast path")

type registry struct {
	mu sync.RWMutex
	m  map[string]string
}

func (r *registry) lookup(n string) (string, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	a, ok := r.m[n]
	return a, ok
}

var reg = &registry{m: map[string]string{"get_weather": "allow", "delete_files": "block"}}

type srw struct {
	w   http.ResponseWriter
	f   http.Flusher
	buf bytes.Buffer
	log bool
}

func (s *srw) Write(p []byte) (int, error) {
	n, err := s.w.Write(p)
	if s.log {
		s.buf.Write(p)
	}
	if *flushMode == "line" || (len(p) == 1 && p[0] == '\n') {
		s.f.Flush()
	}
	return n, err
}

type interceptor struct {
	blocked          map[int]bool
	total, nblocked  int
	blockedOpen      bool
	buf              bytes.Buffer
}

var dataPrefix = []byte("data: ")
var doneLine = []byte("data: [DONE]")
var tu = []byte(`"tool_use"`)
var tc = []byte(`"tool_calls"`)

type anthEvent struct {
	Type         string `json:"type"`
	Index        int    `json:"index"`
	ContentBlock struct {
		Type string `json:"type"`
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"content_block"`
}

func (s *interceptor) Stream(up io.Reader, c io.Writer) []byte {
	sc := bufio.NewScanner(up)
	sc.Buffer(make([]byte, 0, 64*1024), 256*1024)
	emit := func(l []byte) {
		// one write per line, newline included
		s.buf.Write(l)
		s.buf.WriteByte('\n')
		b := s.buf.Bytes()
		c.Write(b[len(b)-len(l)-1:])
	}
	for sc.Scan() {
		line := sc.Bytes()
		if bytes.HasPrefix(line, dataPrefix) && !bytes.Equal(line, doneLine) {
			if len(s.blocked) == 0 && !bytes.Contains(line, tu) && !bytes.Contains(line, tc) {
				emit(line)
				continue
			}
			for _, l := range s.anthropic(line[6:], line) {
				emit(l)
			}
			continue
		}
		emit(line)
	}
	return s.buf.Bytes()
}

func textBlock(i int, name string) [][]byte {
	t, _ := json.Marshal("[agentsh] Tool '" + name + "' blocked by policy")
	idx, _ := json.Marshal(i)
	f := func(a, b string) []byte { return []byte("data: " + a + string(idx) + b) }
	return [][]byte{
		f(`{"type":"content_block_start","index":`, `,"content_block":{"type":"text","text":""}}`), {},
		f(`{"type":"content_block_delta","index":`, `,"delta":{"type":"text_delta","text":`+string(t)+`}}`), {},
		f(`{"type":"content_block_stop","index":`, `}`),
	}
}

func (s *interceptor) anthropic(data, line []byte) [][]byte {
	var e anthEvent
	if json.Unmarshal(data, &e) != nil {
		return [][]byte{line}
	}
	switch e.Type {
	case "content_block_start":
		if e.ContentBlock.Type == "tool_use" {
			s.total++
			if a, ok := reg.lookup(e.ContentBlock.Name); ok && a == "block" {
				s.nblocked++
				if s.blocked == nil {
					s.blocked = map[int]bool{}
				}
				s.blocked[e.Index] = true
				return textBlock(e.Index, e.ContentBlock.Name)
			}
		}
	case "content_block_delta", "content_block_stop":
		if s.blocked[e.Index] {
			return nil
		}
	case "message_delta":
		if s.nblocked > 0 && s.nblocked == s.total {
			var m map[string]json.RawMessage
			var d map[string]any
			if json.Unmarshal(data, &m) == nil && json.Unmarshal(m["delta"], &d) == nil && d["stop_reason"] == "tool_use" {
				d["stop_reason"] = "end_turn"
				m["delta"], _ = json.Marshal(d)
				o, _ := json.Marshal(m)
				return [][]byte{append([]byte("data: "), o...)}
			}
		}
	}
	return [][]byte{line}
}

type sseTransport struct {
	base http.RoundTripper
	w    http.ResponseWriter
}

func (t *sseTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return resp, nil
	}
	defer resp.Body.Close()
	h := t.w.Header()
	for k, v := range resp.Header {
		h[k] = v
	}
	t.w.WriteHeader(resp.StatusCode)
	sw := &srw{w: t.w, f: t.w.(http.Flusher)}
	sw.f.Flush()
	if *usePolicy {
		i := &interceptor{}
		i.Stream(resp.Body, sw)
	} else {
		sw.log = true
		*flushMode = "line"
		io.Copy(sw, resp.Body)
	}
	return nil, errSSEHandled
}

func main() {
	listen := flag.String("listen", "127.0.0.1:9300", "")
	up := flag.String("up", "http://127.0.0.1:9100", "")
	flag.Parse()
	if *innerFile != "" {
		b, _ := os.ReadFile(*innerFile)
		n := bytes.Count(b, []byte("\n\n"))
		for r := 0; r < 5; r++ {
			t := time.Now()
			k := 0
			for time.Since(t) < time.Second {
				i := &interceptor{}
				i.Stream(bytes.NewReader(b), io.Discard)
				k++
			}
			d := time.Since(t).Seconds() / float64(k)
			fmt.Printf("inner loop: %.0f MB/s %.2f Mev/s\n", float64(len(b))/d/1e6, float64(n)/d/1e6)
		}
		return
	}
	u, _ := url.Parse(*up)
	base := &http.Transport{MaxIdleConns: 2000, MaxIdleConnsPerHost: 1000, DisableCompression: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		p := &httputil.ReverseProxy{
			Director: func(q *http.Request) { q.URL.Scheme = u.Scheme; q.URL.Host = u.Host; q.Host = u.Host },
			Transport: &sseTransport{base, w}, FlushInterval: -1,
			ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
				if errors.Is(err, errSSEHandled) {
					return
				}
				w.WriteHeader(502)
			},
			ModifyResponse: func(resp *http.Response) error {
				b, err := io.ReadAll(resp.Body)
				if err != nil {
					return err
				}
				resp.Body.Close()
				if bytes.Contains(b, tu) {
					var m map[string]any
					json.Unmarshal(b, &m)
				}
				resp.Body = io.NopCloser(bytes.NewReader(b))
				return nil
			},
			ErrorLog: log.New(io.Discard, "", 0),
		}
		p.ServeHTTP(w, r)
	})
	log.Fatal(http.ListenAndServe(*listen, h))
}
