"""A head that two readers could read differently is refused; one that is read travels on as the bytes that came."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import (
    MAX_FIELDS,
    MAX_HEAD,
    find_head,
    forwarded_request,
    forwarded_response,
    parse_request,
    parse_response,
)


def request(*fields: bytes, line: bytes = b"POST /v1/messages HTTP/1.1", host: bool = True) -> bytes:
    lines = [line, *([b"Host: localhost"] if host else []), *fields]
    return b"\r\n".join(lines) + b"\r\n\r\n"


REFUSED = {
    "both lengths": (request(b"Content-Length: 3", b"Transfer-Encoding: chunked"), 400),
    "two lengths": (request(b"Content-Length: 3", b"Content-Length: 3"), 400),
    "a list of lengths": (request(b"Content-Length: 3, 3"), 400),
    "a signed length": (request(b"Content-Length: +3"), 400),
    "a negative length": (request(b"Content-Length: -3"), 400),
    "a hexadecimal length": (request(b"Content-Length: 0x3"), 400),
    "an empty length": (request(b"Content-Length:"), 400),
    "a length past counting": (request(b"Content-Length: " + b"9" * 40), 400),
    "another coding": (request(b"Transfer-Encoding: gzip"), 400),
    "chunked after another coding": (request(b"Transfer-Encoding: gzip, chunked"), 400),
    "chunked twice": (request(b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"), 400),
    "a disguised coding": (request(b"Transfer-Encoding: \x0bchunked"), 400),
    "a quoted coding": (request(b'Transfer-Encoding: "chunked"'), 400),
    "chunked in HTTP/1.0": (request(b"Transfer-Encoding: chunked", line=b"POST / HTTP/1.0"), 400),
    "white space before the colon": (request(b"Transfer-Encoding : chunked"), 400),
    "a folded field": (request(b"X: a\r\n b"), 400),
    "a folded framing": (request(b"Transfer-Encoding:\r\n chunked"), 400),
    "white space before the first field": (request(line=b"GET / HTTP/1.1\r\n X: a"), 400),
    "a bare LF in a value": (request(b"X: a\nContent-Length: 3"), 400),
    "a bare CR in a value": (request(b"X: a\rContent-Length: 3"), 400),
    "a NUL in a value": (request(b"X: a\x00b"), 400),
    "a control in a value": (request(b"X: a\x01b"), 400),
    "a control in a name": (request(b"X\x01: a"), 400),
    "a field without a colon": (request(b"Content-Length 3"), 400),
    "a field without a name": (request(b": 3"), 400),
    "no Host": (request(host=False), 400),
    "two Hosts": (request(b"Host: other"), 400),
    "HTTP/2's preface": (b"PRI * HTTP/2.0\r\n\r\n", 505),
    "HTTP/1.2": (request(line=b"GET / HTTP/1.2"), 505),
    "no version": (request(line=b"GET /"), 400),
    "two spaces": (request(line=b"GET  / HTTP/1.1"), 400),
    "a tab in the line": (request(line=b"GET\t/ HTTP/1.1"), 400),
    "a space in the target": (request(line=b"GET /a b HTTP/1.1"), 400),
    "a fragment": (request(line=b"GET /a#b HTTP/1.1"), 400),
    "a raw byte in the target": (request(line=b"GET /\xff HTTP/1.1"), 400),
    "an unknown expectation": (request(b"Expect: the-spanish-inquisition"), 417),
    "too many fields": (request(*[b"X: 1"] * MAX_FIELDS), 431),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_ambiguous_request_head_is_refused(name):
    raw, status = REFUSED[name]
    with pytest.raises(ProtocolError) as caught:
        parse_request(raw)
    assert caught.value.status == status


@pytest.mark.parametrize(
    ("field", "why"),
    [(b"X: a\r\n b", "folded"), (b"X: a\nY: b", "bare LF"), (b"X: a\0", "NUL"), (b"X", "not NAME: VALUE")],
)
def test_a_refusal_says_what_is_wrong_with_the_field(field, why):
    with pytest.raises(ProtocolError, match=why):
        parse_request(request(field))


def test_a_plain_head_is_read():
    head = parse_request(request(b"Content-Length: 12", b"Connection: close, X-Mine", b"Origin: http://a"))
    assert (head.method, head.target, head.minor) == ("POST", b"/v1/messages", 1)
    assert (head.length, head.chunked, head.keep_alive) == (12, False, False)
    assert head.origin == b"http://a"
    assert head.nominated == (b"x-mine",)
    assert head.has_body


def test_http_1_0_is_read_and_closes():
    head = parse_request(b"GET / HTTP/1.0\r\n\r\n")
    assert (head.minor, head.keep_alive, head.has_body) == (0, False, False)


def test_facts_are_found_in_any_case():
    head = parse_request(
        request(b"TRANSFER-ENCODING: Chunked", b"eXpEcT: 100-Continue", b"Upgrade: h2c, WebSocket")
    )
    assert head.chunked
    assert head.expects_continue
    assert head.websocket


def test_a_head_is_found_only_when_whole():
    raw = request(b"X: a")
    assert [find_head(raw[:cut]) for cut in range(len(raw))] == [0] * len(raw)
    assert find_head(raw + b"body") == len(raw)


@pytest.mark.parametrize(
    ("begun", "status"),
    [
        (b"GET /\r\n", 400),
        (b"GET / HTTP/0.9\n", 505),
        (b"\x16\x03\x01\x02", 400),
        (b"GET / HTTP/1.1\r\n" + b"X" * MAX_HEAD, 431),
    ],
)
def test_what_cannot_become_a_head_is_refused_at_once(begun, status):
    with pytest.raises(ProtocolError) as caught:
        find_head(begun)
    assert caught.value.status == status


@pytest.mark.parametrize(
    "hello", [b"\x16\x03", b"\x16\x03\x01\x02\x00\x01\n\xfc\x03\x03", b"\x16\x03\x01\r\nx"]
)
def test_tls_at_a_port_of_plain_http_is_told_as_that(hello):
    with pytest.raises(ProtocolError, match="TLS came: write http://") as refused:
        find_head(hello)
    assert refused.value.status == 400


def test_only_what_ends_at_this_hop_is_left_out_of_a_request():
    kept = [b"x-API-key:  secret ", b"User-Agent: a/1 (b)", b"Accept: */*", b"Cookie: \xe9"]
    gone = [
        b"Connection: X-Mine, close", b"x-mine: 1", b"Keep-Alive: 5", b"TE: trailers", b"Trailer: X", b"Upgrade: h2c",
        b"Proxy-Connection: x", b"Proxy-Authorization: x", b"Expect: 100-continue", b"Content-Length: 3",
    ]  # fmt: skip
    mixed = [line for pair in zip(kept, gone, strict=False) for line in pair] + gone[len(kept) :]
    head = parse_request(request(*mixed))
    assert forwarded_request(head, plain=False) == b"".join(b"\r\n" + line for line in kept)


def test_an_inspected_request_does_not_ask_for_codings():
    head = parse_request(request(b"Accept-Encoding: gzip, br", b"Accept: x"))
    assert forwarded_request(head, plain=True) == b"\r\nAccept: x"
    assert forwarded_request(head, plain=False) == b"\r\nAccept-Encoding: gzip, br\r\nAccept: x"


RESPONSES = {
    "both lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
    "another coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
    "a folded field": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\n\r\n",
    "a bare LF": b"HTTP/1.1 200 OK\r\nX: a\nY: b\r\n\r\n",
    "no status": b"HTTP/1.1 OK\r\n\r\n",
    "no HTTP": b"SSH-2.0-OpenSSH\r\n\r\n",
    "HTTP/2": b"HTTP/2 200\r\n\r\n",
}


@pytest.mark.parametrize("name", RESPONSES)
def test_an_ambiguous_response_head_is_the_upstreams_fault(name):
    with pytest.raises(ProtocolError) as caught:
        parse_response(RESPONSES[name])
    assert caught.value.status == 502


def test_a_response_head_is_read():
    head = parse_response(
        b"HTTP/1.1 200 Fine  thing\r\nContent-Type: Text/Event-Stream; Charset=UTF-8\r\nRequest-Id: req_1\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    assert (head.status, head.content_type, head.request_id) == (200, "text/event-stream", "req_1")
    assert head.chunked
    assert head.keep_alive
    assert head.line == b"HTTP/1.1 200 Fine  thing"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (b"X-Request-Id: x_1", "x_1"),
        (b"x-request-ID:\tx_1\r\nRequest-Id: req_1 ", "req_1"),
        (b"request-id: req_1\r\nrequest-id: req_2", "req_1"),
        (b"Not-request-id: a", ""),
        (b"request-id: " + b"x" * 200, "x" * 128),
    ],
)
def test_the_providers_own_name_of_a_request_is_read_as_it_was_written(fields, told):
    assert parse_response(b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n\r\n").request_id == told


@pytest.mark.parametrize(
    ("content_type", "opaque"),
    [
        (b"application/json", False),
        (b"application/json; charset=utf-8", False),
        (b'text/event-stream;Charset="UTF-8" ; boundary=x', False),
        (b"application/json; charset=ISO-8859-1", False),
        (b"application/json; charset=utf-7", True),
        (b"application/json; charset=iso-2022-jp", True),
        (b"application/json; charset=cp037", True),
        (b"application/json; charset=utf-16", True),
        (b"application/json; charset=utf-8; charset=utf-7", True),
        (b"application/json; charset=utf-7, application/json; charset=utf-8", True),
        (b"application/json; charset*0=utf; charset*1=-7", True),
        (b"application/json; charset='utf-8\"", True),
        (b"application/json; charset=utf-8-7", True),
        (b"application/json; charset", True),
    ],
)  # fmt: skip
def test_a_charset_in_which_letters_may_be_other_bytes_is_told(content_type, opaque):
    head = parse_response(b"HTTP/1.1 200 OK\r\nContent-Type: " + content_type + b"\r\n\r\n")
    assert head.opaque is opaque
    assert head.plain_json is (not opaque and content_type.startswith(b"application/json"))


def test_a_second_content_type_counts_as_well():
    head = parse_response(
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\ncontent-type: text/plain; charset=utf-7\r\n\r\n"
    )
    assert head.opaque
    assert not head.plain_json


@pytest.mark.parametrize(
    ("raw", "verbatim"),
    [
        (b"HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\n", True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nConnection: X-Mine\r\nX-Mine: 1\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nKEEP-ALIVE: timeout=5\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", False),
    ],
)
def test_an_answers_head_may_travel_as_it_came_only_where_nothing_of_it_ends_here(raw, verbatim):
    assert parse_response(raw).verbatim is verbatim


@pytest.mark.parametrize("value", [b"3", b" 3", b"\t3 \t", b"3 "])
def test_white_space_around_a_value_is_none_of_it(value):
    assert parse_request(request(b"Content-Length:" + value)).length == 3
    assert parse_response(b"HTTP/1.1 200 OK\r\nContent-Length:" + value + b"\r\n\r\n").length == 3


@pytest.mark.parametrize(
    ("version", "connection", "kept"),
    [(b"1", b"", True), (b"1", b"close", False), (b"0", b"", False), (b"0", b"Keep-Alive", True)],
)
def test_reuse_follows_version_and_connection(version, connection, kept):
    raw = (
        b"HTTP/1."
        + version
        + b" 200 OK\r\n"
        + (b"Connection: " + connection + b"\r\n" if connection else b"")
        + b"\r\n"
    )
    assert parse_response(raw).keep_alive is kept


@pytest.mark.parametrize(
    ("method", "status", "body"),
    [("HEAD", 200, False), ("GET", 204, False), ("GET", 304, False), ("GET", 200, True)],
)
def test_a_body_is_expected_where_rfc_9112_has_one(method, status, body):
    assert parse_response(b"HTTP/1.1 %d x\r\n\r\n" % status).has_body(method) is body


def test_a_rewritten_body_loses_what_described_the_old_one():
    head = parse_response(
        b"HTTP/1.1 200 OK\r\nETag: x\r\nContent-Length: 3\r\nServer: s\r\nContent-Encoding: gzip\r\n\r\n"
    )
    assert forwarded_response(head, rewritten=True) == b"\r\nServer: s"
    assert (
        forwarded_response(head, rewritten=False)
        == b"\r\nETag: x\r\nContent-Length: 3\r\nServer: s\r\nContent-Encoding: gzip"
    )


FIELDS = st.sampled_from(
    [
        b"Connection: keep-alive", b"connection: Keep-Alive, x-mine", b"Connection:", b"TE: a", b"te: ab", b"TE:", b"Trailer: x", b"trailer: xy",
        b"X-Mine: 1", b"Server: s", b"X-TE: a", b"X: TE: a", b"Keep-Alive: timeout=5", b"Proxy-Connection: x", b"Content-Length: 3",
    ]
)  # fmt: skip


@given(st.lists(FIELDS, max_size=8))
def test_what_travels_on_is_every_field_but_those_that_end_here(fields):
    try:
        head = parse_response(b"".join(b"%b\r\n" % line for line in [b"HTTP/1.1 200 OK", *fields, b""]))
    except ProtocolError:
        return  # two lengths
    ends = {b"connection", b"te", b"trailer", b"keep-alive", b"proxy-connection", *head.nominated}
    left = [field for field in fields if field.partition(b":")[0].lower() not in ends]
    assert forwarded_response(head, rewritten=False) == b"".join(b"\r\n" + field for field in left)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(data):
    for read in (parse_request, parse_response, find_head):
        try:
            read(b"GET / HTTP/1.1\r\n" + data + b"\r\n\r\n")
        except ProtocolError:
            continue
