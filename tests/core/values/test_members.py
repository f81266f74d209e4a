"""A member is found wherever it stands and however its key is spelled, and what is no business of the search is left alone."""

from __future__ import annotations

from agentsh_net.core.values.members import Member, at, find, folded, plain, twice

NAMES = frozenset({"functioncall"})


def test_keys_are_compared_without_case_and_underscores() -> None:
    assert {plain(k) for k in ("functionCall", "function_call", "FUNCTION_CALL", "Function_Call")} == {
        "functioncall"
    }


def test_members_are_found_at_any_depth_in_the_order_of_the_text() -> None:
    value = {"a": [{"functionCall": 1}, {"b": {"function_call": 2}}], "FunctionCall": 3}
    assert find(value, NAMES) == [
        Member(("a", 0, "functionCall"), 1),
        Member(("a", 1, "b", "function_call"), 2),
        Member(("FunctionCall",), 3),
    ]


def test_what_is_in_a_found_member_or_an_opaque_one_is_not_searched() -> None:
    value = {"functionCall": {"functionCall": 1}, "functionResponse": {"functionCall": 2}}
    assert find(value, NAMES, frozenset({"functionresponse"})) == [
        Member(("functionCall",), {"functionCall": 1})
    ]


def test_a_scalar_has_no_members() -> None:
    assert find("functionCall", NAMES) == []
    assert folded(["functionCall"]) == {}


def test_of_keys_that_read_alike_the_last_counts_and_they_are_told() -> None:
    value = {"functionCall": 1, "function_call": 2, "a": 3}
    assert folded(value) == {"functioncall": 2, "a": 3}
    assert twice(value) == {"functioncall"}
    assert twice({"a": 1}) == frozenset()


def test_a_path_leads_to_its_value() -> None:
    assert at({"a": [1, {"b": 2}]}, ("a", 1, "b")) == 2
    assert at(5, ()) == 5
