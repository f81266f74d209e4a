"""The fuzz targets by name, and the inputs each begins with: the recorded transcripts, and honest messages of the parsers."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final

import dns.message
import dns.rrset
from fuzz import mcp_lines, parsers, requests, streams

TRANSCRIPTS = Path(__file__).parent.parent / "transcripts"
FOUND = Path(__file__).parent / "found"

Target = Callable[[bytes], None]

TARGETS: Final[dict[str, Target]] = {
    **{name: partial(streams.check, wire) for name, wire in streams.WIRES.items()},
    **{
        f"{name}-whole": partial(streams.check_whole, wire)
        for name, wire in streams.WIRES.items()
        if name != "invoke"
    },
    "requests": requests.check,
    "requests-grown": requests.grown,
    "json": parsers.json_readings,
    "signs": parsers.call_signs,
    "unread": parsers.unread_answers,
    "mcp-client": mcp_lines.of_client,
    "mcp-server": mcp_lines.of_server,
    "sse": parsers.decoder,
    "dns": parsers.dns_answer,
    "dns-packets": parsers.dns_packets_in,
    "http-request": parsers.http_request,
    "http-response": parsers.http_response,
}

_FOLDERS = {"anthropic": "anthropic", "chat": "openai_chat", "responses": "openai_responses"}


def seeds(target: str) -> Iterator[bytes]:
    """Yield the first inputs of a target."""
    if target in streams.WIRES or target.endswith("-whole"):
        head = b"\x00" if target.endswith("-whole") else b"\x00\x05"
        folder = TRANSCRIPTS / _FOLDERS.get(target, "none")
        yield from (head + path.read_bytes() for path in sorted(folder.glob("*.sse")))
        for number in range(24):  # and such that the grammar grows
            rng = random.Random(number)
            options = bytes([(24 if number & 2 else 8) | number & 1, number])[: len(head)]
            yield options + rng.randbytes(rng.randrange(4, 160))
    elif target == "sse":
        for path in sorted(TRANSCRIPTS.glob("*/*.sse")):
            yield b"\x07" + path.read_bytes()
            yield b"\x01" + path.read_bytes()[:600].replace(b"\n", b"\r\n")
    elif target == "signs":
        yield from (bytes([first, 10, 11, second]) for first in range(0, 24, 8) for second in (7, 12, 16))
        yield bytes([16, 9, 10]) + b"\x02"
    elif target == "unread":
        yield from (bytes([34, 7, 34]), bytes([0, 1]), bytes([0, 16, 4]), bytes([34, 0, 9, 1, 34, 26, 36]))
    elif target.startswith("mcp"):
        yield from (bytes([line]) for line in range(len(mcp_lines.LINES)))
        for number in range(40):
            yield random.Random(number).randbytes(1 + 3 * (number % 4))
    elif target.startswith("dns"):
        yield from _dns() if target == "dns" else (_packets(message) for message in _dns())
    elif target == "http-request":
        yield b"POST /v1/messages?beta=true HTTP/1.1\r\nHost: a\r\nContent-Length: 12\r\nContent-Type: application/json\r\n\r\n"
        yield b"GET / HTTP/1.0\r\nConnection: keep-alive, X-A\r\nX-A: 1\r\nTransfer-Encoding: chunked\r\n\r\n"
        yield b"PUT http://a/b HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nExpect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n"
    elif target == "http-response":
        yield b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        alike = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Id: %d\r\nContent-Length: %d\r\n\r\n"
        yield b"".join(alike % (number, number) for number in range(4))
        yield b"HTTP/1.0 401 No\r\nContent-Length: 7\r\nConnection: close, ETag\r\nETag: x\r\nContent-Encoding: gzip\r\n\r\n"
    elif target == "requests-grown":
        for number in range(len(requests.BODIES)):
            yield bytes([number])
            yield bytes([number]) + random.Random(number).randbytes(80)
    else:
        yield from (json.dumps(body).encode() for body in requests.BODIES)
        yield json.dumps({"messages": [{"role": "user", "content": "x\u2028"}], "n": 1e400}).encode()


def _dns() -> Iterator[bytes]:
    query = dns.message.make_query("mcp.example.test", "A")
    for kind, told in (
        ("A", "192.0.2.1"),
        ("AAAA", "2001:db8::1"),
        ("CNAME", "b.example.test."),
        ("HTTPS", "1 . ipv4hint=192.0.2.1"),
    ):
        answer = dns.message.make_response(query)
        answer.answer.append(dns.rrset.from_text("mcp.example.test.", 60, "IN", kind, told))
        yield answer.to_wire()


def _packets(message: bytes) -> bytes:
    """Return a UDP and a TCP packet from port 53, each behind its length."""
    made = b""
    for protocol, inner in (
        (17, b"\x00\x35\x10\x00" + (8 + len(message)).to_bytes(2, "big") + b"\0\0" + message),
        (
            6,
            b"\x00\x35\x10\x00"
            + bytes(8)
            + b"\x50\x18"
            + bytes(6)
            + len(message).to_bytes(2, "big")
            + message,
        ),
    ):
        packet = (
            b"\x45\0"
            + (20 + len(inner)).to_bytes(2, "big")
            + b"\0\0\0\0\x40"
            + bytes([protocol])
            + b"\0\0\x7f\0\0\1\x7f\0\0\2"
            + inner
        )
        made += bytes([len(packet)]) + packet if len(packet) < 256 else b""
    return made
