"""A call is what its fragments add up to, and the indices of what is kept close up once one is freed."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.dialects.openai_chat.calls import Call, ChoiceState, Fate, Named
from agentsh_net.core.dialects.openai_chat.fragments import Slot, scan


def grown(*entries: dict[str, Any]) -> Call:
    call = Call(0, ("delta", "tool_calls", 0), odd=False)
    for entry in entries:
        (fragment,) = scan({"choices": [{"delta": {"tool_calls": [entry]}}]}).fragments
        call.grow(fragment, "")
    return call


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (['{"a"', ": 1}"], {"a": 1}),
        (['{"a"'], '{"a"'),
        ([""], ""),
        (["{}", "{}"], "{}{}"),
        (['"\\ud800"'], "\ud800"),
        (['{"n":123456789012345678901234567890}'], {"n": 123456789012345678901234567890}),
    ],
)
def test_arguments_are_a_value_where_they_parse_and_text_where_not(texts: list[str], value: Any) -> None:
    call = grown({"function": {"name": "n"}}, *({"function": {"arguments": t}} for t in texts))
    assert call.tool_call().input == value


def test_arguments_that_come_as_two_values_are_in_doubt_since_only_some_clients_take_both_for_one_call() -> (
    None
):
    first = {"function": {"name": "get", "arguments": {"a": "evil"}}}
    assert not grown(first).tool_call().doubt
    assert (
        grown(first, {"index": None, "function": {"arguments": 5}}).tool_call().doubt
        == "they came twice, as two values"
    )


def test_free_text_of_a_custom_tool_is_never_parsed() -> None:
    assert grown({"custom": {"name": "n", "input": "12"}}).tool_call().input == "12"


@pytest.mark.parametrize("empty", [None, {}, {"name": "", "input": ""}])
def test_an_empty_custom_tool_beside_a_function_is_none(empty: object) -> None:
    call = {"custom": empty, "function": {"name": "n", "arguments": '{"a": 1}'}}
    assert grown(call).tool_call().input == {"a": 1}


def test_a_name_is_its_fragments_joined_or_the_one_that_came_again_and_again() -> None:
    assert grown({"function": {"name": "get_"}}, {"function": {"name": "it"}}).name == "get_it"
    assert grown({"function": {"name": "x"}}, {"function": {"name": "x"}}).name == "x"


def test_the_first_id_and_the_namespace_are_told_to_the_judge() -> None:
    call = grown({"id": "c1", "namespace": "mcp__s", "function": {"name": "t"}}, {"id": "c2"}).tool_call()
    assert (call.call_id, call.namespace, call.dialect) == ("c1", "mcp__s", "openai")


def state(*calls: tuple[Any, str, list[str], Fate]) -> ChoiceState:
    choice = ChoiceState()
    for index, call_id, names, fate in calls:
        slot: Slot = ("delta", "tool_calls", index)
        call = Call(0, slot, odd=False, id=call_id, names=names, fate=fate)
        choice.calls.append(call)
        choice.pending.append(call)
        choice.names += [Named(call, name) for name in names]
    return choice


def kept(index: Any, call_id: str, *names: str) -> tuple[Any, str, list[str], Fate]:
    return index, call_id, list(names), Fate.KEPT


def removed(index: Any, call_id: str, *names: str) -> tuple[Any, str, list[str], Fate]:
    return index, call_id, list(names), Fate.REMOVED


def joins(choice: ChoiceState) -> set[str] | None:
    found = choice.joins()
    return None if found is None else set(found)


def test_calls_in_their_common_form_have_one_reading() -> None:
    assert joins(state(kept(0, "a", "x"), kept(1, "b", "y"))) == set()
    assert joins(state(kept(7, "a", "x"))) == set()


@pytest.mark.parametrize(
    "second",
    [kept(None, "b", "y"), kept(0, "b", "y"), kept(2, "b", "y"), kept(-1, "b", "y"), kept(1, "a", "y")],
)
def test_calls_that_some_client_takes_for_one_have_their_join_as_a_reading(second: Any) -> None:
    found = joins(state(kept(0, "a", "x"), second))
    assert found is not None
    assert "xy" in found


def test_every_piece_of_a_split_name_is_a_reading() -> None:
    assert joins(state(kept(0, "a", "x", "y"))) == {"x", "y", "xy"}


def test_what_is_removed_is_in_no_reading() -> None:
    assert joins(state(removed(0, "a", "x"), kept(0, "b", "y"))) == set()


def test_more_pieces_than_can_be_asked_about_are_not_asked_about() -> None:
    assert joins(state(kept(0, "a", *"abcdefghijklmnopq"))) is None


def numbers(choice: ChoiceState) -> list[int | None]:
    choice.release()
    return [call.number for call in choice.calls]


def test_indices_stay_until_one_is_freed() -> None:
    choice = state(kept(0, "a", "x"), kept(1, "b", "y"))
    assert numbers(choice) == [None, None]
    assert choice.next_number == 2


def test_indices_close_up_once_one_is_freed() -> None:
    choice = state(removed(0, "a", "x"), kept(1, "b", "y"), removed(2, "c", "z"), kept(3, "d", "w"))
    choice.shifted = True
    assert numbers(choice) == [None, 0, None, 1]


def test_an_index_that_was_not_there_is_only_added_to_part_readings() -> None:
    choice = state(kept(None, "a", "x"))
    choice.shifted = True
    assert numbers(choice) == [None]
    choice = state(kept(None, "a", "x"), kept(None, "b", "y"))
    choice.unified = True
    assert numbers(choice) == [0, 1]


def test_a_choice_is_emptied_when_it_had_calls_and_the_client_got_none() -> None:
    assert not ChoiceState().emptied
    assert state(removed(0, "a", "x")).emptied
    assert not state(removed(0, "a", "x"), kept(1, "b", "y")).emptied


def test_an_id_of_its_own_is_kept_and_a_shared_one_replaced() -> None:
    choice = state(kept(0, "a", "x"), kept(1, "a", "y"), kept(2, "c", "z"), kept(3, "", "w"))
    ids = [choice.own_id(call) for call in choice.calls]
    assert ids == ["call_agentsh_0", "call_agentsh_1", "c", "call_agentsh_3"]


def test_names_that_were_settled_are_not_gone_through_again() -> None:
    call = grown({"function": {"name": "n"}})
    call.fate = Fate.KEPT
    choice = ChoiceState(calls=[call], pending=[call], names=[Named(call, "n")])
    choice.release()
    first, choice.names[0] = choice.names[0], object()  # type: ignore[call-overload]
    choice.names.append(Named(call, "m"))
    choice.release()
    assert (first.released, choice.names[1].released) == (True, True)
