"""Each prompt and resource is held against its own pin: another one is no change, and what is not listed this time stays known."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.links import link
from agentsh_net.core.mcp.glance import LISTS
from agentsh_net.core.trust import definitions
from agentsh_net.core.trust.definitions import MAX_DEFINITION, MAX_DEFINITIONS, MAX_NAME
from agentsh_net.core.trust.identity import LISTED, Aspect, Identity, forgotten, trusted

NOW = "2026-01-01T00:00:00Z"


def prompts(*named: dict[str, Any]) -> dict[str, Any]:
    return definitions.read("prompts/list", {"prompts": list(named)})


def prompt(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "Says hello.", **more}


def look(before: Identity | None, *named: dict[str, Any], trust_first: bool = True) -> Identity:
    return definitions.seen(before, "peer", Aspect.PROMPTS, prompts(*named), trust_first=trust_first, now=NOW)


def test_every_list_that_the_shim_looks_at_is_pinned_and_no_verdict_rests_on_one() -> None:
    assert set(definitions.KINDS) == LISTS
    assert {kind.aspect for kind in definitions.KINDS.values()} == LISTED


@pytest.mark.parametrize(
    "field",
    [{"title": "Hi"}, {"description": "Reads keys."}, {"arguments": [{"name": "a"}]}, {"x-vendor": 1}, {"_meta": {"a": 1}}, {"icons": []}],
)  # fmt: skip
def test_every_field_is_pinned(field: dict[str, Any]) -> None:
    first = look(None, prompt("a"))
    assert (first.state, first.trusted_at) == ("trusted", NOW)
    then = look(first, prompt("a") | field)
    assert (then.state, definitions.changed(then)) == ("changed", ("a",))
    assert look(then, prompt("a")) == first


def test_a_value_of_another_type_is_a_change_though_python_takes_it_for_equal() -> None:
    first = look(None, prompt("a", arguments=[{"name": "x", "required": True}]))
    assert look(first, prompt("a", arguments=[{"name": "x", "required": 1}])).state == "changed"


def test_another_prompt_is_trusted_at_first_sight_and_one_that_is_gone_stays_known() -> None:
    second = look(look(None, prompt("a")), prompt("b"))
    assert (second.state, set(second.pinned)) == ("trusted", {"a", "b"})
    assert look(second, prompt("a", title="x")).state == "changed"


def test_nothing_is_trusted_without_a_word_where_policy_says_so() -> None:
    first = look(None, prompt("a"), trust_first=False)
    assert (first.state, first.pinned) == ("new", {})
    told = trusted(first, NOW)
    assert look(told, prompt("a"), trust_first=False).state == "trusted"
    assert look(told, prompt("b"), trust_first=False).state == "new"
    assert look(forgotten(told), prompt("a", title="x")).state == "new"


def test_what_changes_with_the_contents_of_a_resource_is_no_change_of_its_definition() -> None:
    def listed(**more: Any) -> dict[str, Any]:
        page = {"resources": [{"uri": "x:y", "name": "n", **more}]}
        return definitions.read("resources/list", page)

    one = listed(size=1, annotations={"lastModified": "2025", "priority": 1})
    assert one == listed(size=2, annotations={"lastModified": "2026", "priority": 1})
    assert one != listed(size=2, annotations={"lastModified": "2026", "priority": 0.5})


@pytest.mark.parametrize(
    "page", [None, [], {}, {"prompts": {}}, {"prompts": [1, {}, {"name": 1}]}, {"tools": [{"name": "a"}]}]
)
def test_what_is_no_definition_is_left_out(page: Any) -> None:
    assert definitions.read("prompts/list", page) == {}


def test_of_two_under_one_name_neither_is_the_one_that_was_trusted() -> None:
    first = look(None, prompt("a"))
    assert look(first, prompt("a"), prompt("a")).state == "trusted"
    assert look(first, prompt("a", title="x"), prompt("a")).state == "changed"
    assert look(first, prompt("a"), prompt("a", title="x")).state == "changed"


def test_a_long_definition_is_known_by_its_digest() -> None:
    long = "x" * MAX_DEFINITION
    first = look(None, prompt("a", title=long + "1"))
    assert set(first.offered["a"]) == {"length", "sha256"}
    assert look(first, prompt("a", title=long + "2")).state == "changed"


def test_whoever_lists_more_than_are_kept_pushes_none_out() -> None:
    first = look(None, prompt("a"))
    full = look(first, *(prompt(f"p{n}") for n in range(MAX_DEFINITIONS + 5)))
    assert len(full.offered) == len(full.pinned) == MAX_DEFINITIONS
    assert look(full, prompt("more")) == full
    assert look(full, prompt("a", title="x")).state == "changed"


@pytest.mark.parametrize("name", ["n", "\N{GRINNING FACE}"])
def test_no_page_makes_a_report_that_is_too_long_for_the_link(name: str) -> None:
    full = MAX_DEFINITION - 40
    page = prompts(*(prompt(f"{i}" + name * (MAX_NAME - 10), x=name * full) for i in range(5000)))
    assert 0 < len(page) < 2000
    assert (
        len(link.encode(link.Report({"server_id": "s", "listed": {"prompts": page}}))) < link.MAX_FROM_WORKER
    )
    assert prompts(prompt(name * (MAX_NAME + 1))) == {}


def test_fresh_is_what_was_not_seen_last() -> None:
    first = look(None, prompt("a"), prompt("b"))
    assert set(definitions.fresh(None, prompts(prompt("a")))) == {"a"}
    assert set(definitions.fresh(first, prompts(prompt("a"), prompt("b", title="x"), prompt("c")))) == {"b", "c"}  # fmt: skip
