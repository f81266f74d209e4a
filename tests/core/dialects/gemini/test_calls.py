"""Each call is judged once, when it is complete, and its verdict becomes edits that touch its own part alone."""

from __future__ import annotations

import json
from typing import Any

from transcripts.gemini import DELETE, WEATHER, answer, candidate, denying, part, piece, refused, text

from agentsh_net.core.dialects.gemini.calls import MAX_OPEN, Ledger
from agentsh_net.core.dialects.gemini.parts import scan
from agentsh_net.core.dialects.inline_edits import rewritten
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.values.strict_json import Path, Reading, read


def reading(value: Any) -> Reading:
    return read((value if isinstance(value, str) else json.dumps(value)).encode())


class Answer:
    def __init__(self, *denied: str) -> None:
        self.judge = denying(*denied)
        self.ledger = Ledger(self.judge)
        self.out = Output(fail_closed=False, error_frame=str.encode)

    def take(self, value: Any) -> dict[Path, Any]:
        return self.ledger.edits(self.ledger.add(scan(reading(value)), self.out))


PARTS = ("candidates", 0, "content", "parts")


def test_a_refused_call_becomes_text_in_its_place_and_an_allowed_one_stays() -> None:
    here = Answer(DELETE)
    edits = here.take(answer(text("a"), part(DELETE, {"x": 1}), part(WEATHER)))
    assert edits == {(*PARTS, 1): refused(DELETE)}
    assert [(c.name, c.input, c.ordinal) for c in here.judge.asked] == [
        (DELETE, {"x": 1}, 1),
        (WEATHER, {}, 2),
    ]


def test_the_signature_of_a_refused_call_goes_to_the_first_one_that_stays() -> None:
    here = Answer(DELETE)
    edits = here.take(answer(part(DELETE, thoughtSignature="sig"), part(WEATHER), part(WEATHER)))
    assert edits == {(*PARTS, 0): refused(DELETE), (*PARTS, 1, "thoughtSignature"): "sig"}
    assert here.take(answer(part(DELETE, thoughtSignature="late"))) == {(*PARTS, 0): refused(DELETE)}
    assert here.take(answer(part(WEATHER, thoughtSignature="own"))) == {}


def test_a_call_in_pieces_is_judged_with_all_its_arguments_and_its_later_parts_go() -> None:
    here = Answer(DELETE)
    marks = here.ledger.add(scan(reading(answer(piece(DELETE)))), here.out)
    assert here.ledger.open
    assert here.judge.asked == []
    marks += here.ledger.add(
        scan(reading(answer(piece(jsonPath="$.p", stringValue="/etc"), piece(more=False)))), here.out
    )
    assert not here.ledger.open
    assert [(c.name, c.input) for c in here.judge.asked] == [(DELETE, {"p": "/etc"})]
    assert set(here.ledger.edits(marks)) == {(*PARTS, 0), (*PARTS, 1)}


def test_arguments_of_which_nobody_knows_where_they_stand_are_told_as_such() -> None:
    here = Answer()
    here.take(answer(piece("f"), piece(more=False, jsonPath="$..a", numberValue=1)))
    assert here.judge.asked[0].doubt


def test_another_name_within_a_call_is_a_flaw() -> None:
    here = Answer()
    here.take(answer(piece(WEATHER), piece(DELETE, more=False)))
    assert [(c.name, c.flaw) for c in here.judge.asked] == [(WEATHER, f"a call of {DELETE!r} within a call")]


def test_calls_of_two_candidates_go_on_beside_each_other() -> None:
    here = Answer()
    here.take({"candidates": [candidate(piece("a"), index=0), candidate(piece("b"), index=1)]})
    here.take({"candidates": [candidate(piece(more=False), index=1), candidate(piece(more=False), index=0)]})
    assert [(c.name, c.flaw) for c in here.judge.asked] == [("b", ""), ("a", "")]


def test_a_call_without_a_name_or_an_end_is_judged_as_such() -> None:
    here = Answer()
    here.take(answer(piece(more=False)))
    here.take(answer(piece(WEATHER)))
    here.ledger.abandon(here.out)
    assert [c.flaw for c in here.judge.asked] == ["a call without a name", "the answer ended inside the call"]


def test_what_may_be_open_at_once_is_bounded() -> None:
    here = Answer()
    here.take({"candidates": [candidate(piece("a"), index=n) for n in range(MAX_OPEN)]})
    assert not here.ledger.full
    here.take({"candidates": [candidate(piece("a"), index=MAX_OPEN)]})
    assert here.ledger.full


def test_a_text_that_parsers_read_differently_is_written_anew_to_be_read_in_one_way() -> None:
    source = '{"candidates":[{"content":{"parts":[{"functionCall":{"name":"a","name":"b"}}]}}], "big":12345678901234567890}'
    here = Answer()
    edits = here.take(source)
    found = scan(reading(source))
    data = rewritten(source.encode(), reading(source), edits, ambiguous=found.ambiguous, hidden=False)
    assert data is not None
    assert b'"name"' not in data
    assert json.loads(data)["candidates"][0]["content"]["parts"] == [
        refused("b", "the key 'name' stands twice")
    ]


def test_a_hidden_call_is_refused_unheard() -> None:
    here = Answer()
    assert here.ledger.hidden("the key 'candidates' stands twice", here.out)
    assert here.judge.asked[0].flaw
