"""An event's id and retry are read as the HTML standard says, whatever ends its lines, and an endless event is an error."""

from __future__ import annotations

import pytest

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing import sse
from agentsh_net.core.mcp import stream as mcp_stream
from agentsh_net.core.mcp.stream import StreamEvent


def events(data: bytes) -> list[StreamEvent]:
    return [mcp_stream.read(frame) for frame in sse.Decoder(1000).feed(data)]


@pytest.mark.parametrize("newline", [b"\n", b"\r\n", b"\r"])
def test_every_field_is_read_whatever_ends_the_line(newline: bytes) -> None:
    data = newline.join([b"event: endpoint", b"id: 7", b"retry: 250", b"data: /m", b"", b""])
    assert StreamEvent("endpoint", b"/m", "7", 250) in events(data + b"data")


@pytest.mark.parametrize(
    ("lines", "event"),
    [
        (b"data: x", StreamEvent("message", b"x")),
        (b"id: 1\ndata:", StreamEvent("message", b"", "1")),
        (b"id\ndata: x", StreamEvent("message", b"x", "")),
        (b"id: \ndata: x", StreamEvent("message", b"x", "")),
        (b"id:  a b \ndata: x", StreamEvent("message", b"x", " a b ")),
        (b"id: a\0b\ndata: x", StreamEvent("message", b"x")),
        (b"id: 1\nid: 2\ndata: x", StreamEvent("message", b"x", "2")),
        (b"idle: 1\nretrying: 5\ndata: id: 9", StreamEvent("message", b"id: 9")),
        (b"retry: soon\ndata: x", StreamEvent("message", b"x")),
        (b"retry: -1\ndata: x", StreamEvent("message", b"x")),
        (b"retry: 99999999999999\ndata: x", StreamEvent("message", b"x")),
        (b": a comment", StreamEvent("message", b"")),
    ],
)
def test_fields_mean_what_the_standard_says(lines: bytes, event: StreamEvent) -> None:
    assert events(lines + b"\n\n") == [event]


def test_an_event_past_the_bound_is_an_error() -> None:
    with pytest.raises(ProtocolError, match="too long"):
        events(b"data: " + b"x" * 2000)
