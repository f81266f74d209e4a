"""Every call within another's arguments is found under every name that a client may read, and what cannot be read is flawed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.model import Candidate, Shown, ToolCall
from agentsh_net.core.verdicts.inner_calls import MAX_CALLS, inner_calls, names_recipients, wraps_alone

PARALLEL = "multi_tool_use.parallel"


def uses(*names: str, **fields: Any) -> dict[str, Any]:
    return {
        "tool_uses": [
            {"recipient_name": name, "parameters": {"n": at}, **fields} for at, name in enumerate(names)
        ]
    }


def found(name: str, value: Any, **fields: Any) -> list[tuple[str, str, Any]]:
    return [(c.namespace, c.name, c.input) for c in inner_calls(ToolCall(name, "c", value, **fields))]


@pytest.mark.parametrize(
    "name",
    [
        PARALLEL,
        " Multi_Tool_Use.Parallel\u200b",
        "multi_tool_use_parallel",
        f"functions.{PARALLEL}",
        "anything",
    ],
)
def test_the_calls_that_run_in_parallel_are_found(name: str) -> None:
    assert found(name, uses("functions.get", "rm", "functions.mcp__fs__rm")) == [
        ("", "get", {"n": 0}), ("", "rm", {"n": 1}), ("", "mcp__fs__rm", {"n": 2}),
    ]  # fmt: skip
    assert names_recipients(ToolCall(name, input={"tool_uses": [{"x": 1}, *uses("x")["tool_uses"]]}))


def test_a_wrapper_in_a_namespace_is_one_too_and_so_is_a_namespace_in_a_wrapper() -> None:
    assert found("parallel", uses("mcp__fs.rm"), namespace="multi_tool_use") == [("mcp__fs", "rm", {"n": 0})]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("batch", {"tool_calls": [{"tool": "rm", "parameters": {"a": 1}}]}),
        ("batch_tool", {"invocations": [{"name": "rm", "arguments": '{"a": 1}'}]}),
        ("parallel", {"calls": [{"toolName": "rm", "args": {"a": 1}}]}),
        (PARALLEL, {"Tool_Uses": [{"Recipient_Name": "rm", "Parameters": {"a": 1}}]}),
        (PARALLEL, {"tool_uses": [{"recipient_name": PARALLEL, "parameters": {"tool_uses": [{"recipient_name": "rm", "parameters": {"a": 1}}]}}]}),
    ],
)  # fmt: skip
def test_the_ways_in_which_wrappers_write_it_are_known(name: str, value: dict[str, Any]) -> None:
    assert found(name, value) == [("", "rm", {"a": 1})]


def test_two_names_in_one_entry_are_two_calls_and_two_arguments_a_doubt() -> None:
    calls = inner_calls(
        ToolCall("batch", input={"calls": [{"tool": "get", "name": "rm", "args": {}, "input": {"a": 1}}]})
    )
    assert [c.name for c in calls] == ["get", "rm"]
    assert all(c.doubt for c in calls)


@pytest.mark.parametrize(
    ("value", "flaw"),
    [
        ('{"tool_uses": [', "the calls within it cannot be read"),
        ({"tool_uses": "rm"}, "the calls within it cannot be read"),
        ({"uses": [{"recipient_name": "rm"}]}, "the calls within it cannot be read"),
        ({"tool_uses": [{"recipient_name": ["rm"]}]}, "a call within it has no name"),
        ({"tool_uses": [{"recipient_name": ""}]}, "a call within it has no name"),
        ({"tool_uses": ["rm"]}, "a call within it has no name"),
        ({"tool_uses": [{"recipient_name": "get", "name": ["rm"]}]}, "a call within it has no name"),
        ({"tool_uses": [{"recipient_name": PARALLEL, "parameters": "{"}]}, "the calls within it cannot be read"),
        (uses(*["x"] * (MAX_CALLS + 1)), "more calls within it than can be judged"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_flawed(value: Any, flaw: str) -> None:
    assert [c.flaw for c in inner_calls(ToolCall(PARALLEL, input=value))] == [flaw]
    kept = inner_calls(ToolCall(PARALLEL, input=value, flaw="of the whole"))
    assert [c.flaw for c in kept] == ["of the whole"]


def test_as_many_calls_as_are_judged_are_found() -> None:
    assert len(found(PARALLEL, uses(*["x"] * MAX_CALLS))) == MAX_CALLS
    program = " ".join(f"tools.t{n}()" for n in range(MAX_CALLS + 1))
    assert len(found("exec", program)) == MAX_CALLS


@pytest.mark.parametrize(
    ("name", "meant"), [("fs.", ("", "fs.")), (".rm", ("", ".rm")), ("a.b.c", ("a", "b.c"))]
)
def test_a_dot_parts_a_namespace_only_where_both_sides_have_letters(
    name: str, meant: tuple[str, str]
) -> None:
    assert found(PARALLEL, uses(name)) == [(*meant, {"n": 0})]


def test_wrappers_nested_without_an_end_are_flawed() -> None:
    value: Any = uses("rm")
    flaws = []
    for _ in range(6):
        flaws += [c.flaw for c in inner_calls(ToolCall(PARALLEL, input=value))]
        value = {"tool_uses": [{"recipient_name": PARALLEL, "parameters": value}]}
    assert flaws == [""] * 4 + ["calls within each other, too deep to judge"] * 2


def test_doubt_of_the_whole_is_doubt_of_each() -> None:
    assert [c.doubt for c in inner_calls(ToolCall(PARALLEL, input=uses("x"), doubt="cut"))] == ["cut"]
    assert inner_calls(ToolCall(PARALLEL, doubt="cut"))[0].flaw


@pytest.mark.parametrize(
    ("name", "value", "server"),
    [
        ("batch", {"calls": [{"name": "rm"}]}, "db"),  # an MCP server's own
        ("run", {"calls": [{"name": "rm"}]}, ""),
        ("batch", {"items": [{"name": "rm"}]}, ""),
        (PARALLEL, {}, ""),
        (PARALLEL, None, ""),
        ("Bash", {"command": "tools.rm()"}, ""),
        ("exec", {"command": ["rm"]}, ""),
        ("exec", {"title": "tools.rm()"}, ""),
        ("x", {"items": [{"recipient_name": "rm"}]}, ""),
    ],
)
def test_other_calls_have_none(name: str, value: Any, server: str) -> None:
    assert inner_calls(ToolCall(name, input=value, server_name=server)) == ()
    assert not names_recipients(ToolCall(name, input=value))


@pytest.mark.parametrize(
    ("program", "named"),
    [
        ("await tools.mcp__fs__rm({path: '/'})", {("", "mcp__fs__rm")}),
        ("const f = mcp__fs__rm; f()", {("", "mcp__fs__rm")}),
        ('tools["rm"]({})', {("", "rm")}),
        ("functions?.rm ({})", {("", "rm")}),
        ("await mcp.fs.rm({})", {("", "fs"), ("fs", "rm")}),
        ("servers['fs'].rm()", {("", "fs"), ("fs", "rm")}),
        ('call_tool("rm", {})', {("", "rm")}),
        ("await client.callTool(`fs`, `rm`)", {("", "fs"), ("fs", "rm")}),
        ("invokeTool('rm')\nuse_mcp_tool('fs', 'rm')", {("", "rm"), ("", "fs"), ("fs", "rm")}),
        ("tools.length; print('rm')", set()),
    ],
)
@pytest.mark.parametrize(
    "wrap", [str, lambda text: {"code": text}, lambda text: {"Input": text, "timeout": 3}]
)
def test_what_a_program_names_as_it_stands_is_found(
    program: str, named: set[tuple[str, str]], wrap: Any
) -> None:
    for name in ("program", "exec", "code_execution"):
        call = ToolCall(name, input=wrap(program))
        calls = inner_calls(call)
        assert {(c.namespace, c.name) for c in calls} == named
        assert all(c.hypothetical and c.doubt for c in calls)
        assert not (calls and wraps_alone(calls))


ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["", "rm", PARALLEL, "functions.rm", "a.b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["tool_uses", "calls", "recipient_name", "name", "parameters", "input", "x"]), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(st.sampled_from([PARALLEL, "batch", "x", "exec"]), ANY)
def test_no_arguments_are_an_error_of_ours_and_every_recipient_is_found(name: str, value: Any) -> None:
    calls = inner_calls(ToolCall(name, input=value))
    assert len(calls) <= MAX_CALLS * 8
    if name == PARALLEL and json.dumps(value) not in ("null", '""', "{}"):
        assert calls


def test_what_a_wrapper_was_shown_to_be_says_nothing_of_the_calls_within() -> None:
    shown = Shown((Candidate("fs", "rm", "h"),))
    for call in (
        ToolCall(PARALLEL, "c", uses("get"), shown=shown),
        ToolCall("exec", "c", "await tools.get({})", shown=shown),
    ):
        assert [inner.shown for inner in inner_calls(call)] == [None]


def test_a_wrapper_within_another_that_cannot_be_read_is_flawed() -> None:
    within = {"tool_uses": [{"recipient_name": PARALLEL, "parameters": '{"tool_uses": ['}]}
    (inner,) = inner_calls(ToolCall(PARALLEL, "c", within))
    assert inner.flaw == "the calls within it cannot be read"
