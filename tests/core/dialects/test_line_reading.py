"""A line that is an event to clients that read line by line, and none by the rules, is found; honest frames hide nothing."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.line_reading import hides_event, on_one_line
from agentsh_net.core.framing import sse

CALL = '{"type":"content_block_start"}'


@pytest.mark.parametrize(
    "text",
    [
        f"data: {CALL}\ndata: {CALL}\n\n",
        f'data: {{"type":"ping","x":\ndata: {CALL}\ndata: }}\n\n',
        f"data: {{\r\ndata:{CALL}\r\n\r\n",
        f": comment\u2028data: {CALL}\n\n",
        f"id: 7\x0bdata: {CALL}\n\n",
        f'event: x\u0085data: {CALL}\ndata: {{"type":"ping"}}\n\n',
        f"retry: \x1cdata:{CALL}\n\n",
        f"\ufeffdata: {CALL}\n\n",
        f"event: x\r\n\ufeffdata: {CALL}\r\n\r\n",
        'data: {"a":1,\n\ufeffdata: "b":2}\n\n',
        "data: []\ndata: " + '{"a":' * 5000 + "1" + "}" * 5000 + "\n\n",
    ],
)
def test_an_event_in_a_line_of_its_own_is_found(text: str) -> None:
    assert hides_event(sse.parse(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        f"event: x\ndata: {CALL}\n\n",
        f": comment\u2028\ndata: {CALL}\n\n",
        'data: {"type":"x",\ndata: "a":1}\n\n',
        'data: {"text":"a\u2028data: {\\"type\\":1}"}\n\n',
        "data: [1,\ndata: 2]\n\n",
        ": data: {}\n\n",
        f"\ufeffevent: x\ndata: {CALL}\n\n",
        'data: {"text":"\ufeff"}\n\n',
        "data: {broken\ndata: {broken\n\n",
        "\n",
    ],
)
def test_an_honest_or_broken_frame_hides_nothing(text: str) -> None:
    assert not hides_event(sse.parse(text.encode()))


def test_lines_are_joined_as_clients_do_that_put_nothing_between_them() -> None:
    text = "a\rb\nc\r\nd\u2028e\u0085f\x0bg\u00e9\u4e2d"
    assert on_one_line(text.encode()).decode() == "".join(text.splitlines())
    assert on_one_line(b"a\x1cb\x1dc\x1ed\x0ce") == b"abcde"


def test_the_mark_that_a_stream_begins_with_hides_nothing() -> None:
    assert not hides_event(sse.parse(f"\ufeffdata: {CALL}\n\n".encode(), first=True))
