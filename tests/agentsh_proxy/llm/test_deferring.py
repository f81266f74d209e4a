"""What comes before an answer is chosen is held, nothing of it is lost, and from then on it is the chosen answer."""

from __future__ import annotations

from agentsh_proxy.llm.deferring import Deferred
from agentsh_proxy.llm.relaying import Answer, Client, Relay
from inspected import BOTH, SSE


class At:
    """Chooses a relay once so many bytes are there, or all."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.asked: list[bytes] = []

    def __call__(self, held: bytes, *, last: bool) -> Answer | None:
        self.asked.append(held)
        return Relay(SSE, BOTH) if last or len(held) >= self.size else None


def test_what_was_held_goes_through_the_chosen_answer_and_nobody_is_asked_again():
    choose = At(3)
    answer = Deferred(BOTH, choose)
    assert answer.feed(b"ab", last=False) == b""
    assert (answer.started, answer.done, answer.closing) == (False, False, False)
    assert answer.feed(b"cd", last=False).endswith(b"4\r\nabcd\r\n")
    assert answer.feed(b"e", last=True) == b"1\r\ne\r\n0\r\n\r\n"
    assert (answer.started, answer.done) == (True, True)
    assert choose.asked == [b"ab", b"abcd"]


def test_the_end_of_a_short_body_chooses_too():
    assert Deferred(BOTH, At(9)).feed(b"ab", last=True).endswith(b"2\r\nab\r\n0\r\n\r\n")


def test_before_the_choice_there_is_nothing_to_say_and_the_client_decides_what_closes():
    answer = Deferred(Client(chunks=True, keep_alive=False), At(9))
    answer.feed(b"ab", last=False)
    assert (answer.fail("gone"), answer.keep_alive(), answer.closing) == (b"", b"", True)
