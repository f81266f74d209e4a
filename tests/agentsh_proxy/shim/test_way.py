"""A direction of the shim keeps bytes and order, holds what is undecided, and never grows past its bound."""

from __future__ import annotations

import pytest
from agentsh_proxy.shim import way
from agentsh_proxy.shim.way import HIGH_WATER, Held, Way


class Script:
    """A way whose lines beginning with `?` are held, to be decided by the test."""

    def __init__(self) -> None:
        self.held: list[Held] = []
        self.offered: list[bytes] = []
        self.all_pass = False
        self.long: list[Held] = []
        self.lost: list[tuple[bytes, bytes]] = []
        self.way = Way(
            self.take, self.take_all, self.long.append, lambda head, tail: self.lost.append((head, tail))
        )

    def take_all(self, lines: bytes) -> bool:
        self.offered.append(lines)
        return self.all_pass

    def take(self, line: bytes) -> None:
        if line.startswith(b"?"):
            self.held.append(self.way.hold(line))
        else:
            self.way.forward(line)

    def written(self) -> bytes:
        out, self.way.out[:] = bytes(self.way.out), b""
        return out


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Script:
    monkeypatch.setattr(way, "MAX_LINE", 100)
    return Script()


def test_lines_pass_byte_for_byte_however_they_are_cut() -> None:
    data = b'{"a":1}\n\n \r\n{"b": 2}\r\n'
    for cut in range(len(data) + 1):
        script = Script()
        script.way.feed(data[:cut])
        script.way.feed(data[cut:])
        script.way.end()
        assert script.written() == data
        assert script.way.idle


def test_whole_lines_pass_together_where_all_of_them_do() -> None:
    script = Script()
    script.all_pass = True
    script.way.feed(b"?1\n?2\n?")
    script.way.feed(b"3\n")
    assert script.offered == [b"?1\n?2\n", b"?3\n"]
    assert script.written() == b"?1\n?2\n?3\n"
    assert not script.held


def test_lines_never_overtake_one_that_is_held() -> None:
    script = Script()
    script.way.feed(b"?1\n")
    script.all_pass = True
    script.way.feed(b"2\n")
    assert script.offered == [b"?1\n"], "and so they are not taken together"
    assert script.written() == b""
    script.way.release(script.held[0], b"?1")
    assert script.written() == b"?1\n2\n"


def test_what_has_no_newline_at_the_end_gets_none() -> None:
    script = Script()
    script.way.feed(b"a\nb")
    script.way.end()
    assert script.written() == b"a\nb"


def test_a_held_line_holds_those_behind_it() -> None:
    script = Script()
    script.way.feed(b"1\n?2\n3\n?4\n5\n")
    assert script.written() == b"1\n"
    assert not script.way.idle
    script.way.release(script.held[1], b"?4")
    assert script.written() == b""
    script.way.release(script.held[0], b"two")
    assert script.written() == b"two\n3\n?4\n5\n"
    assert script.way.waiting == 0
    assert script.way.idle


def test_a_line_that_does_not_go_on_leaves_nothing() -> None:
    script = Script()
    script.way.feed(b"?1\n2\n")
    script.way.release(script.held[0], None)
    assert script.written() == b"2\n"


def test_a_message_of_ours_stands_between_lines() -> None:
    script = Script()
    script.way.feed(b"1\nha")
    script.way.insert(b"ours")
    script.way.feed(b"lf\n?3\n")
    script.way.insert(b"more")
    assert script.written() == b"1\nours\nhalf\n"
    script.way.release(script.held[0], b"3")
    assert script.written() == b"3\nmore\n"


def test_past_the_high_water_it_is_full_until_something_is_written() -> None:
    script = Script()
    line = b"x" * 1000 + b"\n"
    while not script.way.full:
        script.way.feed(line)
    assert len(script.way.out) <= HIGH_WATER + len(line)
    script.written()
    assert not script.way.full


def test_held_bytes_count_too() -> None:
    script = Script()
    while not script.way.full:
        script.way.feed(b"?" * 1000 + b"\n")
    assert script.way.waiting > HIGH_WATER


def test_a_line_past_the_bound_waits_for_a_decision_and_no_more_is_read(small: Script) -> None:
    small.way.feed(b"before\n" + b"x" * 101)
    assert len(small.long) == 1
    assert small.way.full
    assert small.written() == b"before\n"


@pytest.mark.parametrize("step", [1, 7, 1000])
def test_a_long_line_that_may_pass_streams_through(small: Script, step: int) -> None:
    data = b"before\n" + b"x" * 500 + b"\nafter\n"
    out = b""
    for at in range(0, len(data), step):
        small.way.feed(data[at : at + step])
        if small.way.full:
            small.way.release_long(small.long[-1])
        out += small.written()
    assert out == data
    assert len(small.long) == (1 if step < 500 else 0)


def test_a_line_that_is_whole_when_it_is_read_needs_no_bound(small: Script) -> None:
    """A read is 64 KiB: what fits one is no burden, whatever the bound."""
    small.way.feed(b"x" * 500 + b"\n")
    assert small.written() == b"x" * 500 + b"\n"


def test_what_was_read_of_whole_lines_is_not_counted_for_the_next(small: Script) -> None:
    for _ in range(4):
        small.way.feed(b"x" * 40)
        small.way.feed(b"\n" + b"y" * 40)
    assert small.long == []


@pytest.mark.parametrize("decided", ["passes", "cut", "waits"])
def test_a_way_that_stops_in_the_middle_of_a_long_line_ends_it_and_says_what_waited(
    small: Script, decided: str
) -> None:
    small.way.feed(b"x" * 200)
    if decided == "passes":
        small.way.release_long(small.long[0])
    elif decided == "cut":
        small.way.cut(small.long[0])
    small.way.insert(b"ours")
    small.way.stop()
    if decided == "waits":
        assert small.written() == b""
        small.way.release_long(small.long[0])
    assert small.written() == (b"x" * 200 + b"\n" if decided == "passes" else b"") + b"ours\n"
    assert (small.way.waiting, small.way.idle) == (0, True)


def test_ours_are_said_once_whatever_follows(small: Script) -> None:
    for expected in (b"ours\n", b""):
        small.way.feed(b"x" * 200)
        small.way.release_long(small.long.pop())
        small.way.insert(b"ours") if expected else None
        small.way.feed(b"\n")
        assert small.written() == b"x" * 200 + b"\n" + expected


def test_ours_do_not_stand_in_the_middle_of_a_long_line(small: Script) -> None:
    small.way.feed(b"x" * 200)
    small.way.release_long(small.long[0])
    small.way.insert(b"ours")
    small.way.feed(b"yyy\nnext\n")
    assert small.written() == b"x" * 200 + b"yyy\nours\nnext\n"


def test_a_long_line_behind_a_held_one_keeps_its_place(small: Script) -> None:
    small.way.feed(b"?1\n" + b"x" * 200)
    small.way.release_long(small.long[0])
    small.way.feed(b"y\n2\n")
    assert small.written() == b""
    small.way.release(small.held[0], b"1")
    assert small.written() == b"1\n" + b"x" * 200 + b"y\n2\n"


def test_a_long_line_that_is_cut_leaves_its_beginning_and_end_to_be_told_of(small: Script) -> None:
    small.way.feed(b"head" + b"x" * 200)
    small.way.cut(small.long[0])
    assert not small.way.full
    small.way.feed(b"z" * 10_000)
    small.way.insert(b"ours")
    small.way.feed(b"tail\nnext\n")
    assert small.written() == b"ours\nnext\n"
    ((head, tail),) = small.lost
    assert head.startswith(b"head") and tail.endswith(b"tail\n")
    assert len(head) <= way.MAX_TAIL and len(tail) <= way.MAX_TAIL
    assert small.way.waiting == 0
