"""The laws of the parsers of untrusted bytes: typed errors only, bounded work, and no two readings where another parser reads along."""

from __future__ import annotations

import json
import re
from ipaddress import ip_address
from typing import Any

import dns.exception
import dns.message
import dns.name
import dns.rdatatype
import httptools
from fuzz import readers
from fuzz.streams import cut

from agentsh_net.core.dialects import unread
from agentsh_net.core.dialects.call_signs import Places, may_hide_call
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import Decoder
from agentsh_net.core.network import dns_message, dns_packets
from agentsh_net.core.web import familiar_heads, http_head


def decoder(data: bytes) -> None:
    """All bytes come out in order; frames are those of the standard; chunks decide nothing; no more is held than may be."""
    seed, stream = (*data[:1], 0)[0], data[1:]
    for bound in (1 << 20, 64):
        machine = Decoder(bound)
        frames = []
        for piece in cut(stream, seed):
            frames += machine.feed(piece)
            assert machine.pending <= bound
        last = machine.finish()
        frames += [last] if last else []
        assert b"".join(frame.raw for frame in frames) == stream
        if bound > len(stream):
            told = [(frame.event, frame.data) for frame in frames if frame.data is not None]
            assert told == readers.events(stream)


def dns_answer(data: bytes) -> None:
    """Whatever dnspython finds in an answer, ours finds too."""
    try:
        message = dns_message.parse(data)
    except ProtocolError:
        message = None
    try:
        question = dns_message.question_of(data)
        assert len(question) <= 260
    except ProtocolError:
        pass
    if message is None:
        return
    assert len(message.records) <= 65536
    dns_message.ascribe(message, {message.question})
    dns_message.mentioned(message, {message.question})
    try:
        theirs = dns.message.from_wire(data, one_rr_per_rrset=True)
    except (dns.exception.DNSException, ValueError):
        return
    if not message.readable:
        return
    ours = {str(record.address) for record in message.records}
    for rrset in theirs.answer:
        for item in rrset:
            if rrset.rdclass == 1 and rrset.rdtype in (dns.rdatatype.A, dns.rdatatype.AAAA):
                assert str(ip_address(item.address)) in ours, (item.address, ours)


def dns_packets_in(data: bytes) -> None:
    """Packets of any content and length: nothing raises, and no more is kept than the bounds say."""
    machine = dns_packets.Messages()
    at = 0
    while at < len(data):
        size = data[at]
        for payload in machine.feed(data[at + 1 : at + 1 + size]):
            assert len(payload.message) <= 1 << 16
        at += 1 + size
    assert len(machine._flows) <= dns_packets.MAX_FLOWS
    for flow in machine._flows.values():
        assert len(flow.buffer) <= 2 * dns_packets.MAX_BUFFER


def http_request(data: bytes) -> None:
    """What we take for a request's head, llhttp takes too, with the same method, target, and framing."""
    try:
        length = http_head.find_head(data)
    except ProtocolError:
        return
    if not length:
        return
    raw = data[:length]
    try:
        head = http_head.parse_request(raw)
    except ProtocolError:
        return
    http_head.forwarded_request(head, plain=True)
    mould = familiar_heads.mould(raw)
    assert mould is None or mould.length_in(raw) == head.length
    if mould is not None and head.length == len(data) - length:
        assert mould.body_in(data) == data[length:]
    seen: dict[str, Any] = {"headers": []}

    class Listener:
        def on_url(self, url: bytes) -> None:
            seen["url"] = seen.get("url", b"") + url

        def on_header(self, name: bytes, value: bytes) -> None:
            seen["headers"].append((name.lower(), value.strip()))

        def on_headers_complete(self) -> None:
            seen["complete"] = True

    parser = httptools.HttpRequestParser(Listener())
    try:
        parser.feed_data(raw)
    except httptools.HttpParserUpgrade:
        pass
    except httptools.HttpParserError:
        return  # stricter than we are in the names of methods and the like: the next hop refuses it
    assert seen.get("complete"), raw
    assert seen["url"] == head.target
    assert parser.get_method().decode() == head.method
    told = dict(seen["headers"])
    length_told = told.get(b"content-length")
    assert (int(length_told) if length_told else None) == head.length
    assert (b"transfer-encoding" in told) == head.chunked


def http_response(data: bytes) -> None:
    """Only typed errors, what is forwarded has no field that ends here, and who knows the heads before reads each as if alone."""
    heads = familiar_heads.AnswerHeads()
    for text in data.split(b"\r\n\r\n")[:-1]:
        try:
            head = http_head.parse_response(text + b"\r\n\r\n")
        except ProtocolError:
            head = None
        for _ in range(2):
            try:
                assert heads.read(text) == head
            except ProtocolError:
                assert head is None
        for rewritten in (True, False) if head is not None else ():
            fields = http_head.forwarded_response(head, rewritten=rewritten).lower()
            assert b"\r\ntransfer-encoding:" not in fields
            assert not rewritten or b"\r\ncontent-length:" not in fields


_SPELLINGS = (
    "tool", "function_call", "functionCall", "t", "o", "l", "_", "call", "func", "\\u0074", "\\u006f", "\\u006F", "\\u006C", "\\u005f",
    "\\u005F", "\\u0054", "\\", "\\\\", "\\u005c", "\\u00", "\\u004", "u0074", "u006", "\\U0074", "\\ud83d", "\\udc00", "\\u212a", "\\u017f",
    '"', '\\"', ":", ",", "{", "}", "[", "]", "\n", "\r", "\ndata: ", "\ufeff", "\u2028", "0", "f", " ", '"a":', "\\u0063all", "x" * 40, "\\u0000",
)  # fmt: skip
_MARKS = re.compile("tool|function_?call", re.IGNORECASE)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|.)", re.DOTALL)


def call_signs(data: bytes) -> None:
    """What is without a sign of a call has none for any reader of JSON, nor for one who unescapes whatever comes, from wherever."""
    text = "".join(_SPELLINGS[byte % len(_SPELLINGS)] for byte in data[:200])
    raw = text.encode("utf-8", "surrogatepass")
    frames = [line + b"\n" for line in raw.split(b"\n")]
    places = Places(b"".join(frames), ())
    if may_hide_call(raw):
        assert places.first(0) < len(raw) + 1
        return
    assert not any(may_hide_call(frame) for frame in frames)
    # A reader may begin behind any quote or line end: whether a backslash there is escaped itself, it cannot know.
    read = [_unescaped(text[at:]) for at in range(len(text)) if not at or text[at - 1] in '"\n']
    for joined in (text, text.replace("\ndata: ", "\n")):
        for whole in (joined, f'{{"{joined}":1}}', f'["{joined}"]', f'{{"a":1,"{joined}":1,"{joined}":2}}'):
            value = readers.loads(whole.encode("utf-8", "surrogatepass"))
            read.append("\n".join(_strings(value)))
    for one in read:
        assert not _MARKS.search(one), one


_PIECES = (
    b"to", b"ol", b"t", b"o", b"l", b"func", b"tion", b"_call", b"Call", b"\xff", b"\xc2", b"\xe2\x80", b"\xc3\xa9", b"\xef\xbb\xbf", b"\0", b"\\",
    b"\\x6f", b"\\157", b"\\u{6f}", b"\\u006f", b"\\\n", b"\\\r\n", b"\\ ", b"\\n", b'"', b"'", b":", b",", b"{", b"}", b"[", b"]", b"\n", b"\ndata: ",
    b" ", b"\t", b"1", b"null", b"NaN", b"//", b"/*", b"*/", b'"a":', b"x" * 40,
)  # fmt: skip
_LENIENT_ESCAPE = re.compile(
    r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|u\{([0-9a-fA-F]{1,6})\}|([0-7]{1,3})|(\r?\n[ \t]*)|.)",
    re.DOTALL,
)


def unread_answers(data: bytes) -> None:
    """A whole answer that leaves unread has no mark for a reader who drops bytes that are no UTF-8 and knows more escapes than JSON's."""
    text = b"{" + b"".join(_PIECES[byte % len(_PIECES)] for byte in data[:200]) + b"}"
    if not unread.is_harmless(text):
        return
    for errors in ("ignore", "replace"):
        plain = text.decode("utf-8", errors)
        for at in range(len(plain)):
            if not at or plain[at - 1] in "\"'\n":
                assert not _MARKS.search(_LENIENT_ESCAPE.sub(_leniently, plain[at:])), text


def _leniently(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits or match[4]:
        return chr(min(int(digits, 16) if digits else int(match[4], 8), 0x10FFFF))
    return "" if match[5] else match[0][1:]


def _unescaped(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)) if match[1] else match[0], text)


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        value = [part for pair in value.items() for part in pair]
    if isinstance(value, list):
        return [string for part in value for string in _strings(part)]
    return [value] if isinstance(value, str) else []


def json_readings(data: bytes) -> None:
    """What the strict reader says is what the standard library says, unless it tells of a flaw."""
    from agentsh_net.core.values import strict_json

    try:
        reading = strict_json.read(data)
    except ProtocolError:
        return
    if reading.flaws or reading.duplicates:
        return
    theirs = readers.loads(data.removeprefix(b"\xef\xbb\xbf"))
    assert json.dumps(reading.value, default=str)[:65536] == json.dumps(theirs, default=str)[:65536]
