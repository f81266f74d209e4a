"""Requests come out whole and in their order however their bytes come in, and what is none, or too long, is refused."""

from __future__ import annotations

from time import process_time

import pytest
from agentsh_proxy import load as loads
from agentsh_proxy.gateway.requests import HttpRequest, Requests
from agentsh_proxy.load import Load

from agentsh_net.core.errors import ProtocolError

FIRST = b"POST /a HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nx-a: 2\r\nContent-Length: 2\r\n\r\nhi"
CHUNKED = b"POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nyo\r\n0\r\n\r\n"
LAST = b"GET /c HTTP/1.1\r\nHost: h\r\n\r\n"


def read(*parts: bytes, limit: int = 100) -> list[HttpRequest]:
    requests, found = Requests(lambda: limit, Load()), []
    for part in parts:
        requests.add(part)
        while (asked := requests.next()) is not None:
            found.append(asked)
            requests.done()
    assert requests.ahead == 0
    return found


@pytest.mark.parametrize("whole", [FIRST + LAST, FIRST + FIRST, CHUNKED])
def test_every_cut_gives_the_same_requests(whole: bytes) -> None:
    expected = [(r.head.target, r.body) for r in read(whole)]
    assert expected
    for at in range(1, len(whole)):
        assert [(r.head.target, r.body) for r in read(whole[:at], whole[at:])] == expected
    assert [(r.head.target, r.body) for r in read(*(whole[i : i + 1] for i in range(len(whole))))] == expected


def of_length(length: bytes, body: bytes = b"") -> bytes:
    return FIRST[:-2].replace(b"Length: 2", b"Length: " + length) + body


@pytest.mark.parametrize("length", [0, 1, 9, 10, 99])
def test_a_head_that_differs_in_its_length_alone_is_the_one_before(length: int) -> None:
    again = of_length(b"%d" % length, b"x" * length)
    for cut in range(len(again)):
        first, second, third = read(FIRST, again[:cut], again[cut:] + FIRST)
        assert second.head is first.head and second.fields is first.fields and third.head is first.head
        assert (first.body, second.body, third.body) == (b"hi", b"x" * length, b"hi")


@pytest.mark.parametrize("length", [b"", b"+2", b"-2", b"2, 2", b"2 2", b"0x2", b"2\r", b"\xb2", b"0" * 16])
def test_a_length_is_read_as_strictly_behind_a_head_that_is_known(length: bytes) -> None:
    with pytest.raises(ProtocolError):
        read(of_length(length, b"hi"))
    with pytest.raises(ProtocolError):
        read(FIRST, of_length(length, b"hi"))


def test_another_length_is_bounded_and_another_field_makes_another_head() -> None:
    with pytest.raises(ProtocolError, match="longer than 100 bytes"):
        read(FIRST, of_length(b"101"))
    first, second = read(FIRST, of_length(b"2", b"hi").replace(b"x-a: 2", b"x-a: 3"))
    assert second.head is not first.head and second.fields["x-a"] == "1, 3"
    padded = of_length(b" 2 ", b"hi")
    assert [asked.body for asked in read(padded, padded, FIRST)] == [b"hi"] * 3


def test_fields_are_found_by_any_spelling_and_repeats_are_named() -> None:
    (asked,) = read(FIRST)
    assert (asked.method, asked.fields["x-a"], asked.names["x-a"]) == ("POST", "1, 2", "X-A")
    assert asked.repeated == {"x-a"}


def test_one_request_is_read_at_a_time() -> None:
    requests = Requests(lambda: 100, Load())
    requests.add(FIRST + LAST)
    first = requests.next()
    assert first is not None and requests.head is first.head and requests.ahead == len(LAST)
    requests.done()
    assert requests.head is None


def test_who_waits_to_send_a_body_is_known_by_the_length_it_names_now() -> None:
    head = b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n"
    requests = Requests(lambda: 100, Load())
    requests.add(head % 0)
    assert requests.next() is not None
    requests.done()
    requests.add(head % 2)
    assert requests.next() is None and requests.awaited


def test_who_waits_to_send_a_body_is_known_until_it_comes() -> None:
    requests = Requests(lambda: 100, Load())
    requests.add(FIRST.replace(b"X-A: 1", b"Expect: 100-continue")[:-2])
    assert requests.next() is None and requests.awaited
    requests.add(b"h")
    assert requests.next() is None and not requests.awaited
    requests.add(b"i")
    asked = requests.next()
    assert asked is not None and asked.body == b"hi"


@pytest.mark.parametrize("data", [FIRST, CHUNKED])
def test_a_body_past_the_bound_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="longer than 1 bytes") as caught:
        read(data, limit=1)
    assert caught.value.status == 413


def test_nothing_may_follow_a_chunked_body_unasked() -> None:
    with pytest.raises(ProtocolError, match="not pipelined"):
        read(CHUNKED + LAST)


def test_a_body_in_pieces_of_a_byte_costs_as_much_a_piece_at_its_end_as_at_its_beginning() -> None:
    """80,000 of them took 27 s of everybody's time."""
    requests, size = Requests(lambda: 1 << 20, Load()), 60_000
    requests.add(CHUNKED[: CHUNKED.index(b"2\r\nyo")] + b"%x\r\n" % size)
    began = process_time()
    for _ in range(size):
        assert requests.next() is None
        requests.add(b" ")
    assert process_time() - began < 5  # it takes 0.1 s, and took 15


def test_bodies_under_way_weigh_until_they_are_whole_or_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loads, "MAX_LOAD", 3)
    load = Load()
    one, other = Requests(lambda: 100, load), Requests(lambda: 100, load)
    for requests in (one, other):
        requests.add(FIRST[:-1])
        assert requests.next() is None
    assert load.size == 2
    other.add(b"i")
    assert other.next() is not None and load.size == 1
    one.drop()
    assert load.size == 0
    third = Requests(lambda: 100, load)
    third.add(FIRST.replace(b"Length: 2", b"Length: 9"))
    assert third.next() is None
    third.add(b"xx")
    with pytest.raises(ProtocolError, match="too many large requests"):
        third.next()
    fourth = Requests(lambda: 100, load)
    fourth.add(FIRST)
    assert fourth.next() is not None and load.too_much  # whole in one read: nothing of it is held
