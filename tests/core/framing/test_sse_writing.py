"""A frame that is written is one frame to every client, and other data changes nothing else in it."""

from __future__ import annotations

from agentsh_net.core.framing import sse
from agentsh_net.core.framing.sse_writing import make_frame, with_data


def test_a_made_frame_stays_one_frame_whatever_its_name_and_data() -> None:
    assert make_frame("a\nb\r", b"{\r\n}") == b"event: ab\ndata: {  }\n\n"
    assert make_frame("", b"{}") == b"data: {}\n\n"


def test_other_data_changes_nothing_else_in_a_frame() -> None:
    frame = sse.parse(b": c\r\nid: 1\r\ndata:{1}\r\n\r\n")
    assert with_data(frame, b"{2}") == b": c\r\nid: 1\r\ndata:{2}\r\n\r\n"
    frame = sse.parse(b": {1}\nevent: e\ndata: {1}\n\n")
    assert with_data(frame, b"{2}") == b"event: e\ndata: {2}\n\n"
