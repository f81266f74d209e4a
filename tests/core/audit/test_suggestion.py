"""A suggested policy allows what was used and is sound, denies what was made to deceive, and blames nobody for another's doing."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.audit import suggestion
from agentsh_net.core.configuration import config


def intercepted(*pairs: tuple[str, str], **fields: Any) -> dict[str, Any]:
    candidates = [{"server_id": server, "tool_name": tool} for server, tool in pairs]
    return {
        "type": "mcp_tool_call_intercepted",
        "action": "allow",
        "candidates": candidates,
        "tool_name": "x",
    } | fields


def called(server: str, tool: str, **fields: Any) -> dict[str, Any]:
    return {"type": "mcp_tool_called", "action": "allow", "server_id": server, "tool_name": tool} | fields


def offered(server: str, tool: str, severity: str = "", removed: str | None = None) -> dict[str, Any]:
    return {"server_id": server, "tool_name": tool, "max_severity": severity, "removed": removed}


def suggest(events: Any, tools: Any = (), base: Any = None) -> dict[str, Any]:
    made = suggestion.policy(base or {"version": 1}, suggestion.observe(events, tools))
    config.parse(made)
    mcp: dict[str, Any] = made["sandbox"]["mcp"]
    return mcp


def test_what_was_used_is_allowed_and_nothing_else() -> None:
    mcp = suggest(
        [intercepted(("fs", "read")), called("web", "get"), intercepted(("fs", "rm"), action="block")],
        [offered("fs", "read"), offered("fs", "write")],
    )
    assert mcp["allowed_servers"] == [{"id": "fs"}, {"id": "web"}]
    assert mcp["allowed_tools"] == [{"server": "fs", "tool": "read"}, {"server": "web", "tool": "get"}]
    assert (mcp["server_policy"], mcp["tool_policy"], mcp["enforce_policy"]) == (
        "allowlist",
        "allowlist",
        True,
    )
    assert mcp["version_pinning"] == {"auto_trust_first": True, "enabled": True, "on_change": "block"}


def test_a_store_of_an_earlier_version_names_a_candidates_tool_otherwise() -> None:
    old = intercepted(candidates=[{"server_id": "fs", "tool": "read"}])
    assert suggest([old, intercepted(("fs", "read"))])["allowed_tools"] == [{"server": "fs", "tool": "read"}]


def test_a_poisoned_definition_is_denied_though_it_was_used() -> None:
    mcp = suggest([called("fs", "read"), called("evil", "add")], [offered("evil", "add", "critical")])
    assert mcp["allowed_servers"] == [{"id": "fs"}]
    assert mcp["denied_tools"] == [{"server": "evil", "tool": "add"}]


def test_an_honest_tool_that_returned_poison_stays_and_results_are_looked_at() -> None:
    finding = {"severity": "high", "pattern": "ignore-instructions"}
    result = {"type": "mcp_tool_result_inspected", "server_id": "web", "detections": [finding]}
    mcp = suggest([called("web", "get"), result, {"type": "mcp_cross_server_blocked"}])
    assert mcp["allowed_tools"] == [{"server": "web", "tool": "get"}]
    assert mcp["denied_tools"] == []
    assert mcp["output_inspection"] == {"enabled": True, "on_detection": "block"}
    assert mcp["cross_server"] == {"enabled": True}


@pytest.mark.parametrize(
    "event",
    [
        intercepted(("fs", "read"), would="block"),
        intercepted(("fs", "read"), ("web", "read")),
        called("fs", "re*d"),
        called("fs", "x" * 129),
        called("fs", "read\nversion: 2"),
        called("fs", "read\u200b"),
    ],
)
def test_what_is_doubtful_or_reads_as_a_pattern_is_left_out(event: dict[str, Any]) -> None:
    assert suggest([event])["allowed_tools"] == []


def test_what_the_policy_denies_stays_denied_and_its_references_stay_references() -> None:
    deny = {"server": "*", "tool": "rm"}
    servers = [{"id": "web", "type": "http", "url": "https://h/", "headers": {"Authorization": "${TOKEN}"}}]
    base = {
        "version": 1,
        "sandbox": {"mcp": {"servers": servers, "denied_tools": [deny]}},
        "log": {"level": "debug"},
    }
    made = suggestion.policy(
        base, suggestion.observe([called("web", "get")], [offered("web", "bad", "high")])
    )
    assert made["log"] == {"level": "debug"}
    assert made["sandbox"]["mcp"]["servers"] == servers
    assert made["sandbox"]["mcp"]["denied_tools"] == [deny, {"server": "web", "tool": "bad"}]


def test_the_agents_own_tools_are_listed_as_such() -> None:
    mcp = suggest([intercepted(tool_name="Bash"), intercepted(tool_name="mcp__x__y")], base={"version": 1, "sandbox": {"mcp": {"native_tools": ["Read"]}}})  # fmt: skip
    assert mcp["native_tools"] == ["Read", "Bash"]


def test_every_choice_is_explained() -> None:
    seen = suggestion.observe(
        [
            called("fs", "read"),
            called("fs", "read"),
            intercepted(("fs", "rm"), action="block"),
            called("fs", "a*"),
        ],
        [offered("fs", "write"), offered("evil", "add", "high"), offered("fs", "gone", "high", "2026")],
    )
    assert list(suggestion.notes(seen)) == [
        "allowed: fs/read, called 2 times",
        "denied: evil/add: its definition has findings up to high (agentsh-net mcp detections)",
        "left out: fs/rm: 1 call that the policy blocked, or would have blocked",
        "left out: fs/write: offered, and never called",
        "left out: fs/a*: a name that reads as a pattern, or does not show",
    ]


def test_a_call_in_an_answer_and_on_the_wire_is_one_call_whichever_is_read_first() -> None:
    both = [intercepted(("fs", "read"), id="i1"), called("fs", "read", id="c1", intercepted_id="i1")]
    for events in (both, both[::-1]):
        seen = suggestion.observe([*events, called("web", "get", id="c2"), called("web", "get", id="c3")], ())
        assert list(suggestion.notes(seen)) == [
            "allowed: fs/read, called once",
            "allowed: web/get, called 2 times",
        ]


def test_a_tool_whose_calls_were_blocked_was_not_never_called() -> None:
    seen = suggestion.observe([intercepted(("fs", "rm"), action="block")], [offered("fs", "rm")])
    assert list(suggestion.notes(seen)) == [
        "left out: fs/rm: 1 call that the policy blocked, or would have blocked"
    ]


def test_a_long_trail_takes_no_more_memory_than_a_short_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suggestion, "MAX_COUNTED", 3)
    calls = [intercepted(("fs", "read"), id=f"i{n}") for n in range(9)]
    wire = [called("fs", "read", intercepted_id=f"i{n}") for n in range(9)]
    seen = suggestion.observe([event for pair in zip(wire, calls, strict=True) for event in pair], ())
    assert seen.used == {("fs", "read"): 9}
    assert len(seen.counted) == 3
