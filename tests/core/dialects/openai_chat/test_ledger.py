"""Each call is judged once, when complete; what some client would read otherwise is asked about, and parted."""

from __future__ import annotations

from typing import Any

import pytest
from transcripts.openai_chat import Knowing, denying, entry, knowing

from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.openai_chat.calls import Fate
from agentsh_net.core.dialects.openai_chat.fragments import scan
from agentsh_net.core.dialects.openai_chat.ledger import MAX_REMEMBERED, Ledger
from agentsh_net.core.model import Action, ToolCall, Verdict


class Book:
    """A ledger with what it recorded."""

    def __init__(self, judge: Judge, *, streamed: bool = True) -> None:
        self.ledger = Ledger(judge, streamed=streamed)
        self.told: list[tuple[ToolCall, Verdict]] = []

    def add(self, *entries: dict[str, Any], choice: int = 0, hostile: str = "") -> None:
        chunk = scan({"choices": [{"index": choice, "delta": {"tool_calls": list(entries)}}]})
        self.marks = self.ledger.take(chunk.fragments, hostile)

    def settle(self) -> list[tuple[str, bool]]:
        before = len(self.told)
        self.ledger.settle(lambda *decided: self.told.append(decided))
        return [(call.name, verdict.blocked) for call, verdict in self.told[before:]]


def test_a_call_is_open_until_its_choice_ends() -> None:
    book = Book(denying())
    assert not book.ledger.open
    book.add(entry(0, name="x", call_id="a"))
    book.add(entry(0, name="y", call_id="b"), choice=1)
    book.ledger.finish(0)
    assert book.ledger.open
    book.ledger.finish(1)
    assert not book.ledger.open


def test_a_call_is_judged_once_with_all_its_fragments() -> None:
    judge = denying()
    book = Book(judge)
    book.add(entry(0, name="x", args="[1", call_id="a"))
    book.add(entry(0, args=",2]"))
    assert book.settle() == [("x", False)]
    assert book.settle() == []
    assert [asked.input for asked in judge.asked] == [[1, 2]]


def test_another_id_with_a_name_at_the_same_index_is_another_call() -> None:
    book = Book(denying("y"))
    book.add(entry(0, name="x", call_id="a"))
    book.add(entry(0, name="y", call_id="b"))
    assert book.settle() == [("x", False), ("y", True)]


def test_another_id_without_a_name_continues_the_call() -> None:
    book = Book(denying())
    book.add(entry(0, name="x", call_id="a"))
    book.add(entry(0, args="{}", call_id="b"))
    assert book.settle() == [("x", False)]


def test_a_piece_without_index_name_and_id_belongs_to_the_last_call() -> None:
    book = Book(denying())
    book.add(entry(0, name="x", args="{", call_id="a"))
    book.add(entry(..., args="}"))
    assert book.settle() == [("x", False)]
    assert book.told[0][0].input == {}


def test_in_a_whole_answer_every_entry_is_a_call() -> None:
    book = Book(denying(), streamed=False)
    book.add(
        entry(..., name="x", call_id="a"),
        entry(..., name="y", call_id="a"),
        entry(0, name="z"),
        entry(0, name="w"),
    )
    assert book.settle() == [("x", False), ("y", False), ("z", False), ("w", False)]
    assert not book.ledger.choices[0].unified


def test_a_hostile_fragment_makes_its_call_a_flawed_one() -> None:
    judge = denying()
    book = Book(judge)
    book.add(entry(0, name="x", call_id="a"))
    book.add(entry(0, args="{}"), hostile="two readings")
    assert book.settle() == [("x", True)]
    assert [asked.flaw for asked in judge.asked] == ["two readings"]
    assert (book.told[0][1].reason, book.told[0][1].rule) == ("two readings", "protocol")


def test_a_released_call_that_grows_is_judged_again_and_one_that_does_not_is_not() -> None:
    book = Book(denying("delete"))
    book.add(entry(0, name="del", call_id="a"))
    assert book.settle() == [("del", False)]
    book.add(entry(0, args=""))
    assert not book.ledger.open
    book.add(entry(0, name="ete"))
    assert book.ledger.open
    assert book.settle() == [("delete", True)]
    assert not book.ledger.choices[0].emptied


def test_a_call_that_grows_without_end_is_remembered_once() -> None:
    book = Book(denying())
    book.add(entry(0, name="get", call_id="a"))
    book.settle()
    for _ in range(50):
        book.add(entry(0, args="1"))
        assert book.settle() == [("get", False)]
    assert len(book.ledger._released) == 1


def test_a_removed_call_stays_removed_without_another_word() -> None:
    book = Book(denying("x"))
    book.add(entry(0, name="x", call_id="a"))
    book.settle()
    book.add(entry(0, args="{}"))
    assert not book.ledger.open
    assert book.marks[0].call.fate is Fate.REMOVED


def test_a_name_in_pieces_is_unified_where_a_piece_alone_is_blocked() -> None:
    allowed = Book(denying())
    allowed.add(entry(0, name="get_", call_id="a"), entry(0, name="it"))
    allowed.settle()
    assert not allowed.ledger.choices[0].unified
    misread = Book(denying("it"))
    misread.add(entry(0, name="get_", call_id="a"), entry(0, name="it"))
    assert misread.settle() == [("get_it", False)]
    assert misread.ledger.choices[0].unified


def test_calls_whose_names_some_client_joins_to_a_blocked_one_are_parted() -> None:
    book = Book(denying("xy"))
    book.add(entry(..., name="x", call_id="a"), entry(..., name="y", call_id="b"))
    assert book.settle() == [("x", False), ("y", False)]
    assert [mark.call.number for mark in book.marks] == [0, 1]


def test_a_call_whose_name_joins_over_choices_to_a_blocked_one_is_removed() -> None:
    book = Book(denying("xy"))
    book.add(entry(0, name="x", call_id="a"))
    book.add(entry(0, name="y", call_id="b"), choice=1)
    assert book.settle() == [("x", False), ("y", True)]


def test_calls_of_two_choices_are_not_blocked_because_nobody_knows_their_join() -> None:
    judge: Knowing = knowing("x", "y")
    book = Book(judge)
    book.add(entry(0, name="x", call_id="a"))
    book.add(entry(0, name="y", call_id="b"), choice=1)
    assert book.settle() == [("x", False), ("y", False)]


def test_abandoned_calls_are_recorded_as_blocked() -> None:
    book = Book(denying())
    book.add(entry(0, name="x", call_id="a"))
    book.ledger.abandon(lambda *decided: book.told.append(decided), "cut short")
    assert [(call.name, verdict.reason) for call, verdict in book.told] == [("x", "cut short")]
    assert not book.ledger.open
    assert book.ledger.choices[0].emptied


def test_what_is_remembered_is_bounded() -> None:
    book = Book(denying())
    for number in range(3):
        assert not book.ledger.full
        book.add(entry(number, name="n" * (MAX_REMEMBERED // 3), call_id=str(number)))
    assert book.ledger.full


@pytest.mark.parametrize(("first", "second"), [(0, 0.5), (0, None), (None, 0), (0, "0"), (False, 0)])
def test_pieces_under_different_indices_of_a_choice_to_some_clients_are_a_hostile_call(
    first: Any, second: Any
) -> None:
    def judge(call: ToolCall) -> Verdict:
        return Verdict(Action.BLOCK if call.flaw else Action.ALLOW, call.flaw)

    ledger = Ledger(judge, streamed=True)
    told: list[Verdict] = []
    for index, name in ((first, "7"), (second, "mcp__fs__get")):
        choice = {"delta": {"function_call": {"name": name, "arguments": "{}"}}}
        value = {"choices": [choice if index is None else {"index": index, **choice}]}
        ledger.take(scan(value).fragments)
    ledger.settle(lambda _, verdict: told.append(verdict))
    assert Action.BLOCK in {verdict.action for verdict in told}
