"""The worked cases of the design hold, and so do the laws: a deny never opens, audit never blocks, spelling never matters."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from situations import pairs, registry, server, situation, unlimited, verdict

from agentsh_net.core.configuration.settings import (
    ArgumentMatch,
    Config,
    CrossServer,
    Inspection,
    Mcp,
    RateLimit,
    RateLimits,
    ToolRule,
    VersionPinning,
)
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.core.model import Action, Candidate, Crossing, PinState, Shown, ToolCall
from agentsh_net.core.registry import Registry
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.pins import Pins, tool_of, trust, trust_first
from agentsh_net.core.verdicts import policy
from agentsh_net.core.verdicts.steps import Outcome

ALLOW, BLOCK = Action.ALLOW, Action.BLOCK

# Every way in which the worked cases' `server/tool` reaches us.
SPELLINGS = [
    lambda s, t: ToolCall(f"mcp__{s}__{t}"),
    lambda s, t: ToolCall(f"mcp_{s}_{t}"),
    lambda s, t: ToolCall(t, namespace=f"mcp__{s}"),
    lambda s, t: ToolCall(t, server_name=s),
    lambda s, t: ToolCall(f"MCP__{s.upper()}__{t.upper()} "),
]

FS_WEATHER = {"server_policy": "allowlist", "allowed_servers": ["fs", "weather"], "denied_servers": ["*"]}
ALL_BUT_BAD = {"server_policy": "allowlist", "allowed_servers": ["*"], "denied_servers": ["bad"]}
NO_COMMANDS = {"tool_policy": "denylist", "denied_tools": [("*", "execute_command")]}
NO_RM = {"denied_tools": [{"tool": "rm"}]}
ONLY_READS = {"denied_tools": [("*", "*")], "allowed_tools": [("fs", "read_*")]}
NOTHING = {"denied_tools": [("*", "*")]}
NO_DROP = {"denied_tools": [("prod-db", "drop_table")]}

WORKED = [
    (FS_WEATHER, "weather", "get", ALLOW),
    (FS_WEATHER, "evil", "get", BLOCK),
    (ALL_BUT_BAD, "bad", "x", BLOCK),
    (ALL_BUT_BAD, "good", "x", ALLOW),
    (NO_COMMANDS, "fs", "execute_command", BLOCK),
    (NO_COMMANDS, "FS", "Execute_Command", BLOCK),
    (NO_COMMANDS, "fs", "read", ALLOW),
    (NO_RM, "any", "rm", BLOCK),
    (ONLY_READS, "fs", "read_file", ALLOW),
    (ONLY_READS, "fs", "write", BLOCK),
    (NO_DROP, "prod-db", "drop_table", BLOCK),
    (NO_DROP, "other", "drop_table", ALLOW),
]

ETC = (ArgumentMatch("path", "glob", "/etc/*"),)


@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize("seen", [True, False], ids=["registered", "undiscovered"])
@pytest.mark.parametrize(("mcp", "server", "tool", "action"), WORKED)
def test_the_worked_cases_hold_in_every_spelling_of_the_name(mcp, server, tool, action, seen, spell):
    ids = ["fs", "weather", "bad", "good", "any", "prod-db", "other", "evil"]
    offers = {
        i: ["get", "x", "execute_command", "read", "rm", "read_file", "write", "drop_table"] for i in ids
    }
    snapshot = situation(ids, offers if seen else {}, **mcp)
    assert verdict(snapshot, spell(server, tool)).action is action


@pytest.mark.parametrize("spell", SPELLINGS)
def test_a_server_that_nobody_declared_is_judged_by_its_name(spell):
    judged = verdict(situation(["fs", "weather"], **FS_WEATHER), spell("evil", "get"))
    assert judged.action is BLOCK
    assert "server evil is not in allowed_servers" in judged.reason.lower()
    assert (
        verdict(situation(["fs"], **ALL_BUT_BAD), spell("bad", "x")).rule == "sandbox.mcp.denied_servers[0]"
    )


def test_a_star_crosses_slashes():
    snapshot = situation(["io.github/x"], {"io.github/x": ["ns/tool"]}, **NOTHING)
    for name in ("mcp__io_github_x__ns_tool", "io.github/x/ns/tool", "ns/tool"):
        assert verdict(snapshot, name).action is BLOCK


def test_a_denial_is_not_laundered_by_offering_the_name_elsewhere():
    snapshot = situation(
        ["other", "prod-db"], {"other": ["drop_table"], "prod-db": ["drop_table"]}, **NO_DROP
    )
    bare = verdict(snapshot, "drop_table")
    assert bare.action is BLOCK
    assert pairs(bare) == {("prod-db", "drop_table"), ("other", "drop_table")}
    assert bare.rule == "sandbox.mcp.denied_tools[0]"
    assert "prod-db/drop_table" in bare.reason
    assert bare.candidates[0].server_id == "prod-db"  # whose rule decided: events are of the first
    assert "may mean 2 tools" in bare.reason
    prefixed = verdict(snapshot, "mcp__other__drop_table")
    assert prefixed.action is ALLOW
    assert pairs(prefixed) == {("other", "drop_table")}


def test_a_denial_holds_before_discovery_though_another_server_offers_the_name():
    snapshot = situation(["prod-db", "other"], {"other": ["drop_table"]}, **NO_DROP)
    assert verdict(snapshot, "drop_table").action is BLOCK


def charging(buckets):
    return lambda server, _tool, call_id, session: buckets.take(server, f"{session}/{call_id}", 0.0)


def test_denied_calls_cost_nothing():
    limits = RateLimits(True, 60, 10, {"weather": RateLimit(1, 1)})
    snapshot = situation(
        ["weather"], {"weather": ["get", "list"]}, rate_limits=limits, denied_tools=[("weather", "get")]
    )
    charge = charging(Buckets(limits))

    def judge(tool, call_id):
        return snapshot.judge(ToolCall(f"mcp__weather__{tool}", call_id), session_id="s", charge=charge)

    assert [judge("get", str(i)).action for i in range(5)] == [BLOCK] * 5
    assert judge("list", "a").action is ALLOW
    assert judge("list", "a").action is ALLOW  # the same call, judged again
    over = judge("list", "b")
    assert over.action is BLOCK
    assert over.reason == "server weather is over its rate of 1 calls a minute, 1 at once"
    assert over.rule == "sandbox.mcp.rate_limits.per_server.weather"


HARMLESS = {"name": "wipe", "annotations": {"destructiveHint": False}}
HARMFUL = {"name": "wipe", "annotations": {"destructiveHint": True}}


@pytest.mark.parametrize(("on_change", "action"), [("block", BLOCK), ("alert", ALLOW), ("allow", ALLOW)])
def test_a_changed_hint_is_a_changed_tool(on_change, action):
    board = Pins.of([trust(tool_of("disk", HARMLESS), "2026-01-01T00:00:00Z")])
    pinning = VersionPinning(on_change=on_change)
    snapshot = situation(["disk"], {"disk": [HARMFUL]}, pins=board, version_pinning=pinning)
    judged = verdict(snapshot, "mcp__disk__wipe")
    assert judged.action is action
    if action is BLOCK:
        assert "not the version that was trusted" in judged.reason
    same = situation(["disk"], {"disk": [HARMLESS]}, pins=board, version_pinning=pinning)
    assert verdict(same, "mcp__disk__wipe").action is ALLOW


def test_a_new_tool_waits_for_trust_where_first_sight_is_not_enough():
    careful = VersionPinning(auto_trust_first=False)
    waiting = situation(["disk"], {"disk": [HARMLESS]}, version_pinning=careful)
    assert verdict(waiting, "mcp__disk__wipe").action is BLOCK
    board, _ = trust_first(Pins(), waiting.registry.tools.values(), "now")
    assert verdict(waiting.evolve(pins=board), "mcp__disk__wipe").action is ALLOW


FAIL_CLOSED = {"fail_closed": True, "native_tools": ("Bash", "Read", "preset:codex", "browser_*")}


@pytest.mark.parametrize(
    ("name", "action"),
    [
        ("Bash", ALLOW),
        ("bash ", ALLOW),
        ("apply_patch", ALLOW),
        ("browser_click", ALLOW),
        ("unknown_tool", BLOCK),
        ("Bаsh", BLOCK),  # a Cyrillic a
        ("mcp__fs__unseen", BLOCK),
        ("mcp__nobody__x", BLOCK),
        ("mcp__fs__read", ALLOW),
        ("", BLOCK),
        ("mcp__fs__rеad", BLOCK),
        ("use_mcp_tool", BLOCK),
    ],
)
def test_fail_closed_blocks_what_resolves_to_nothing(name, action):
    closed = situation(["fs"], {"fs": ["read"]}, **FAIL_CLOSED)
    assert verdict(closed, name).action is action
    opened = verdict(situation(["fs"], {"fs": ["read"]}), name)
    assert opened.action is ALLOW
    assert ("fail_closed is false" in opened.reason) is (name != "mcp__fs__read")


def test_a_server_cannot_call_its_tool_native():
    closed = situation(["evil"], **FAIL_CLOSED)
    assert verdict(closed, ToolCall("Bash", namespace="mcp__evil")).action is BLOCK
    assert verdict(closed, ToolCall("Bash", server_name="evil")).action is BLOCK
    wrapped = ToolCall("use_mcp_tool", input={"server_name": "evil", "tool_name": "Bash"})
    assert (
        verdict(situation(["evil"], fail_closed=True, native_tools=("use_mcp_tool",)), wrapped).action
        is BLOCK
    )


def test_a_native_tool_that_only_looks_like_a_denied_servers_is_native():
    snapshot = situation(["web"], native_tools=("web_search",), denied_servers=["web"])
    assert verdict(snapshot, "web_search").action is ALLOW
    assert verdict(snapshot, "web_fetch").action is BLOCK
    assert (
        verdict(
            situation(["web"], {"web": ["search"]}, native_tools=("web_search",), denied_servers=["web"]),
            "web_search",
        ).action
        is BLOCK
    )


def test_a_pattern_over_native_tools_opens_no_denial():
    snapshot = situation(
        ["fs"], native_tools=("*",), denied_tools=[("fs", "rm"), {"tool": "kill"}], fail_closed=True
    )
    assert verdict(snapshot, "rm").action is BLOCK
    assert verdict(snapshot, "kill").action is BLOCK
    assert verdict(snapshot, "anything").action is ALLOW


def test_an_allowed_call_quotes_an_alert_then_native_tools_then_the_rule_that_allows_it():
    native = situation(["fs"], native_tools=("*",))
    assert {s.step for s in native.explain(ToolCall("fs_read")).steps} >= {"tool", "native"}
    assert verdict(native, "fs_read").rule == "sandbox.mcp.native_tools[0]"
    allowed = {
        "tool_policy": "allowlist",
        "allowed_tools": ["read"],
        "rate_limits": RateLimits(True, 60, 10),
        "version_pinning": VersionPinning(enabled=False),
    }
    seen = situation(["fs"], {"fs": ["read"]}, **allowed)
    assert verdict(seen, "mcp__fs__read").rule == "sandbox.mcp.allowed_tools[0]"
    assert verdict(situation(["fs"], **allowed), "mcp__fs__read").rule == "sandbox.mcp.fail_closed"


def test_a_denial_by_name_holds_for_the_agents_own_tool_too_and_a_pattern_over_servers_tools_does_not():
    natives = ("preset:claude-code", "Bash", "write_file")
    snapshot = situation(
        ["fs"],
        native_tools=natives,
        denied_tools=[{"tool": "bash"}, {"tool": "write_*"}],
    )
    denied = verdict(snapshot, "Bash")
    assert (denied.action, denied.rule) == (BLOCK, "sandbox.mcp.denied_tools[0]")
    for name in ("write_file", "Write"):  # a pattern; not named at all
        assert verdict(snapshot, name).action is ALLOW, name
    assert verdict(situation(["fs"], native_tools=natives, **NOTHING), "Bash").action is ALLOW


def test_a_denial_by_name_over_arguments_holds_for_the_agents_own_tool_too():
    rules = [{"tool": "Bash", "args": (ArgumentMatch("command", "glob", "rm *"),)}]
    snapshot = situation(["fs"], native_tools=("Bash",), denied_tools=rules)
    assert verdict(snapshot, ToolCall("Bash", input={"command": "rm -rf /"})).action is BLOCK
    assert verdict(snapshot, ToolCall("Bash", input={"command": "ls"})).action is ALLOW


def test_a_tool_denied_on_every_server_is_denied_on_one_that_nobody_knows():
    snapshot = situation(
        ["fs"], denied_tools=[{"tool": "rm"}, {"tool": "wipe_*"}, {"server": "fs", "tool": "kill"}]
    )
    for name in ("rm", "RM", "wipe_disk", "kill", "mcp__x__rm", "x_y_z__rm"):
        assert (verdict(snapshot, name).action is BLOCK) is (name != "x_y_z__rm")
    assert verdict(situation(["fs"], **NOTHING), "Bash").action is ALLOW  # the catch-all is about MCP tools


def test_a_recorded_finding_blocks_at_its_bound():
    snapshot = situation(["fs"], inspection=Inspection("high"))
    for severity, action in (("high", BLOCK), ("critical", BLOCK), ("medium", ALLOW), ("", ALLOW)):
        found, _ = snapshot.registry.register(
            "fs", [replace(tool_of("fs", {"name": "read"}), max_severity=severity)]
        )
        assert verdict(snapshot.evolve(registry=found), "mcp__fs__read").action is action


def test_content_hash_narrows_a_rule_to_one_version():
    read = tool_of("fs", {"name": "read"})
    snapshot = situation(["fs"], {"fs": ["read"]}, denied_tools=[{"tool": "read", "content_hash": read.hash}])
    assert verdict(snapshot, "mcp__fs__read").action is BLOCK
    newer = situation(
        ["fs"],
        {"fs": [{"name": "read", "title": "2"}]},
        denied_tools=[{"tool": "read", "content_hash": read.hash}],
    )
    assert verdict(newer, "mcp__fs__read").action is ALLOW


# explain is judge, written down.


def test_the_trace_ends_with_the_verdict():
    limits = RateLimits(True, 60, 10)
    snapshot = situation(["fs"], {"fs": ["read"]}, rate_limits=limits, allowed_tools=[("fs", "read")])
    explained = snapshot.explain(ToolCall("mcp__fs__read"))
    assert [s.step for s in explained.steps] == ["name", "server", "tool", "pin", "rate", "verdict"]
    assert explained.steps[-1].reason == explained.verdict.reason
    blocked = situation(["fs"], {"fs": ["read"]}, denied_tools=[("fs", "read")]).explain(ToolCall("fs_read"))
    assert [s.step for s in blocked.steps] == ["name", "server", "tool", "verdict"]
    assert blocked.steps[-1].outcome is Outcome.BLOCK


@pytest.mark.parametrize(
    ("mcp", "taken"),
    [
        ({"denied_servers": ["fs"]}, ["server"]),
        ({"denied_tools": [("fs", "read")]}, ["server", "tool"]),
        ({}, ["server", "tool", "pin"]),
        ({"version_pinning": VersionPinning(on_change="alert")}, ["server", "tool", "pin", "inspection"]),
        ({"version_pinning": VersionPinning(enabled=False)}, ["server", "tool", "inspection"]),
    ],
)
def test_the_steps_end_at_the_first_block(mcp, taken):
    found = replace(tool_of("fs", {"name": "read"}), max_severity="critical")
    trusted = Pins.of([trust(tool_of("fs", {"name": "read", "title": "another"}), "now")])
    declared, _ = registry([server("fs")]).register("fs", [found])
    explained = replace(situation(["fs"], **mcp, pins=trusted), registry=declared).explain(
        ToolCall("fs_read")
    )
    assert [step.step for step in explained.steps] == ["name", *taken, "verdict"]
    assert explained.verdict.blocked


def test_explaining_charges_nothing_and_judging_charges_once_per_server():
    limits = RateLimits(True, 60, 10)
    snapshot = situation(["a", "b"], {"a": ["x", "X"], "b": ["x"]}, rate_limits=limits)
    charged = []

    def charge(server, _tool, call_id, session):
        charged.append((server, call_id, session))
        return True

    snapshot.explain(ToolCall("x"))
    assert charged == []
    snapshot.judge(ToolCall("x", "id"), session_id="s", charge=charge)
    assert charged == [("a", "id", "s"), ("b", "id", "s")]
    charged.clear()
    snapshot.judge(ToolCall("mcp__made_up__x", "id"), session_id="s", charge=charge)
    assert charged == []  # no bucket for a server that only a model named


@pytest.mark.parametrize("enforce", [True, False], ids=["enforce", "audit"])
@pytest.mark.parametrize("name", ["drop_table", "mcp__prod-db__drop_table", "Bash", ""])
def test_a_call_of_a_hostile_shape_is_refused_before_any_rule_is_asked_and_audit_lets_it_pass(name, enforce):
    offered = {"prod-db": ["drop_table"], "other": ["drop_table"]}
    snapshot = situation(offered, offered, native_tools=("Bash",), enforce_policy=enforce, **NO_DROP)
    charged = []
    flawed = ToolCall(name, "id", flaw="duplicate key 'name'")
    judged = snapshot.judge(flawed, session_id="s", charge=lambda *call: charged.append(call) or True)
    assert judged.action is (BLOCK if enforce else ALLOW)
    assert (judged.denied, judged.reason, judged.rule) == (True, "duplicate key 'name'", "protocol")
    plain = snapshot.judge(ToolCall(name, "id"), session_id="s", charge=lambda *_: True)
    assert judged.candidates == plain.candidates
    assert charged == []
    assert [step.step for step in snapshot.explain(flawed).steps] == ["name", "protocol", "verdict"]
    assert plain.rule != "protocol"  # the flaw is the call's, not the name's


def test_calls_of_one_answer_are_charged_by_their_place_and_not_by_their_id_alone():
    charged = []
    snapshot = situation(["fs"], {"fs": ["read"]}, rate_limits=RateLimits(True))
    for ordinal in (1, 2, 2):
        call = ToolCall("read", "same", ordinal=ordinal)
        snapshot.judge(call, session_id="s", charge=lambda *charge: charged.append(charge) or True)
    assert charged == [("fs", "read", f"{at}:same", "s") for at in (1, 2, 2)]
    for call in (ToolCall("read", hypothetical=True), ToolCall("read", stored=True)):
        assert snapshot.judge(call, session_id="s", charge=lambda *_: False).action is ALLOW


def test_a_rule_over_the_arguments_of_one_meaning_of_a_name_is_asked():
    rule = {"server": "db", "tool": "read", "args": ETC}
    snapshot = situation(["fs", "db"], {"fs": ["read"], "db": ["read"]}, denied_tools=[rule])
    for path, action in (("/etc/passwd", BLOCK), ("/srv/x", ALLOW)):
        assert verdict(snapshot, ToolCall("read", input={"path": path})).action is action
    anywhere = situation(["fs"], denied_tools=[{"tool": "rm", "args": ETC}])
    for path, action in (("/etc/passwd", BLOCK), ("/srv/x", ALLOW)):
        assert verdict(anywhere, ToolCall("functions.rm", input={"path": path})).action is action


def test_a_tool_that_the_agent_lists_by_name_is_none_that_a_pattern_over_servers_tools_means():
    for natives, rule, action in (
        (("Bash",), "Ba*", ALLOW), (("B*",), "Ba*", BLOCK), (("Bash",), "bash", BLOCK), (("B*",), "x*", ALLOW),
    ):  # fmt: skip
        snapshot = situation(["fs"], fail_closed=True, native_tools=natives, denied_tools=[("*", rule)])
        assert verdict(snapshot, "Bash").action is action
        assert verdict(snapshot, ToolCall("Bash", namespace="functions")).action is action


def test_calls_are_charged_to_servers_that_are_declared_or_were_seen_to_offer_tools():
    charged = []
    snapshot = situation(["fs"], {"web": ["get"]}, rate_limits=RateLimits(True))
    for name in ("mcp__fs__unseen", "mcp__web__unseen", "mcp__nobodys__unseen", "get"):
        snapshot.judge(
            ToolCall(name), session_id="s", charge=lambda *about: charged.append(about[:2]) or True
        )
    assert charged == [("fs", "unseen"), ("web", "unseen"), ("web", "get")]


def test_only_a_block_says_how_much_its_name_may_mean_and_only_where_that_is_more_than_one_tool():
    offered = {"fs": ["read", "rm"], "db": ["read", "rm"]}
    snapshot = situation(offered, offered, denied_tools=[("fs", "rm")])
    assert verdict(snapshot, "rm").reason.endswith("; the name may mean 2 tools")
    assert "may mean" not in verdict(snapshot, "read").reason
    assert "may mean" not in verdict(snapshot, "mcp__fs__rm").reason


def test_a_tool_that_was_shown_as_it_is_is_not_altered():
    snapshot = situation(["fs"], {"fs": ["read"]})
    plain, shown = ToolCall("read"), ToolCall("read", shown=Shown((Candidate("fs", "read", ""),)))
    assert [s.step for s in snapshot.explain(shown).steps][:2] == ["name", "server"]
    altered = snapshot.explain(ToolCall("read", shown=Shown(altered="description")))
    assert altered.verdict.reason != snapshot.explain(plain).verdict.reason
    nobodys = ToolCall("nobodys", shown=Shown(altered="description"))
    assert verdict(snapshot, nobodys).action is ALLOW


@pytest.mark.parametrize(
    ("mcp", "name", "stands"),
    [
        ({}, "read", True),
        ({"denied_tools": ["read"]}, "read", True),
        ({"rate_limits": RateLimits(True)}, "read", False),
        ({"rate_limits": RateLimits(True), "denied_tools": ["read"]}, "read", True),  # a denial costs nothing
        ({"cross_server": CrossServer(True)}, "read", False),
        ({"cross_server": CrossServer(True)}, "nobodys", False),
        ({"denied_tools": [{"tool": "read", "args": ETC}]}, "read", False),
        ({"denied_tools": [{"tool": "read", "args": ETC}]}, "write", True),
    ],
)
def test_a_verdict_stands_for_later_calls_where_it_looked_at_names_alone(mcp, name, stands):
    snapshot = situation(["fs"], {"fs": ["read", "write"]}, **mcp)
    assert snapshot.stands(ToolCall(name)) is stands
    assert not snapshot.stands(ToolCall(name, flaw="two readings"))


def test_only_names_of_a_usual_length_are_remembered():
    snapshot = situation(["fs"], {"fs": ["read"]})
    long = "x" * policy.MAX_REMEMBERED_NAME
    wrapped = {"server_name": "fs", "tool_name": long}
    calls = (
        ToolCall(long + "x"),
        ToolCall("x", namespace=long),
        ToolCall("x", server_name=long),
        ToolCall("use_mcp_tool", input=wrapped),
    )
    for call in calls:
        verdict(snapshot, call)
    assert snapshot._policy._rulings == {}
    verdict(snapshot, "x" * policy.MAX_REMEMBERED_NAME)
    assert len(snapshot._policy._rulings) == 1


# Laws.

ids = st.sampled_from(["fs", "db", "prod-db", "evil"])
tools = st.sampled_from(["read", "write", "drop_table", "a.b", "a_b"])
server_rules = st.lists(st.sampled_from(["*", "fs", "d*", "evil", "prod-?b"]), max_size=3)
tool_rules = st.lists(
    st.tuples(st.sampled_from(["*", "fs", "*db", "evil"]), st.sampled_from(["*", "read", "a?b", "drop_*"])),
    max_size=3,
)
mcps = st.fixed_dictionaries(
    {
        "fail_closed": st.booleans(),
        "native_tools": st.sampled_from([(), ("read",), ("*",)]),
        "server_policy": st.sampled_from(["none", "allowlist", "denylist"]),
        "tool_policy": st.sampled_from(["none", "allowlist", "denylist"]),
        "allowed_servers": server_rules,
        "denied_servers": server_rules,
        "allowed_tools": tool_rules,
        "denied_tools": tool_rules,
    }
)
offers = st.dictionaries(ids, st.lists(tools, max_size=3, unique=True), max_size=3)
wire = st.one_of(
    st.builds(
        lambda s, t, f: f.format(s=s, t=t),
        ids,
        tools,
        st.sampled_from(["mcp__{s}__{t}", "mcp_{s}_{t}", "{s}_{t}", "{t}", "{s}-{t}"]),
    ),
    tools,
    st.sampled_from(["Bash", "mcp__", "mcp__x__y", "unknown"]),
)


one_more = st.one_of(
    st.tuples(st.just("denied_servers"), st.sampled_from(["*", "fs", "e*", "prod-db"])),
    st.tuples(st.just("denied_tools"), st.tuples(ids, tools)),
    st.tuples(st.just("denied_tools"), st.builds(ToolRule, ids, tools, args=st.just(ETC))),
)


@settings(deadline=None)
@given(mcps, offers, wire, one_more)
def test_one_more_deny_rule_never_opens_anything(mcp, offered, name, rule):
    before = verdict(situation(["fs", "db"], offered, **mcp), name)
    key, extra = rule
    after = verdict(situation(["fs", "db"], offered, **(mcp | {key: [*mcp[key], extra]})), name)
    assert not (before.action is BLOCK and after.action is ALLOW)


@pytest.mark.parametrize("args", [(), ETC])
@pytest.mark.parametrize("tool", ["read", "drop_table"])
def test_a_deny_rule_that_names_a_server_settles_no_name_that_may_be_of_another(tool, args):
    allowed = {"server_policy": "allowlist", "allowed_servers": ["prod-?b"]}
    name = "mcp_prod-db_drop_table"  # of prod-db, or of prod-db_drop
    assert verdict(situation(["fs"], **allowed), name).action is BLOCK
    rule = ToolRule("prod-db", tool, args=args)
    assert verdict(situation(["fs"], **allowed, denied_tools=[rule]), name).action is BLOCK
    known = situation(["fs", "prod-db"], **allowed, denied_tools=[ToolRule("prod-db", "read")])
    assert verdict(known, name).action is ALLOW, "a declared server settles it"


@given(mcps, offers, wire, st.sampled_from(["", "two readings"]))
def test_audit_mode_blocks_nothing_and_says_what_enforcing_would_do(mcp, offered, name, flaw):
    enforced = verdict(situation(["fs", "db"], offered, **mcp), ToolCall(name, flaw=flaw))
    audited = verdict(
        situation(["fs", "db"], offered, enforce_policy=False, **mcp), ToolCall(name, flaw=flaw)
    )
    assert audited.action is ALLOW
    assert (audited.would is BLOCK) is (enforced.action is BLOCK)
    assert (audited.reason, audited.rule, audited.candidates) == (
        enforced.reason,
        enforced.rule,
        enforced.candidates,
    )


def wide(text):
    return "".join(chr(ord(c) + 0xFEE0) if c.isalnum() else c for c in text)


@given(
    mcps,
    offers,
    wire,
    st.sampled_from([str.upper, str.title, wide, lambda n: f" {n}\n", "\u200b".join]),
)
def test_case_width_and_invisible_characters_change_no_verdict(mcp, offered, name, variant):
    snapshot = situation(["fs", "db"], offered, **mcp)
    one, other = verdict(snapshot, name), verdict(snapshot, variant(name))
    assert (one.action, one.rule) == (other.action, other.rule)


@given(mcps, offers, wire)
def test_the_trace_and_the_verdict_are_one(mcp, offered, name):
    snapshot = situation(["fs", "db"], offered, **mcp)
    explained = snapshot.explain(ToolCall(name))
    assert explained.verdict == verdict(snapshot, name)
    assert explained.verdict.reason
    last = explained.steps[-1]
    assert (last.step, last.reason, last.rule) == (
        "verdict",
        explained.verdict.reason,
        explained.verdict.rule,
    )
    assert (last.outcome is Outcome.BLOCK) is any(s.outcome is Outcome.BLOCK for s in explained.steps[:-1])
    assert (last.outcome is Outcome.BLOCK) is explained.verdict.blocked


@given(mcps, offers, wire)
def test_a_call_is_blocked_if_any_candidate_alone_would_be(mcp, offered, name):
    snapshot = situation(["fs", "db"], offered, **mcp)
    judged = verdict(snapshot, name)
    alone = [
        verdict(snapshot, ToolCall(c.tool, server_name=c.server_id)) for c in judged.candidates if c.tool_hash
    ]
    assert judged.blocked or not any(v.blocked for v in alone)


@given(mcps, ids)
def test_the_server_step_alone_agrees_with_the_verdict(mcp, server):
    snapshot = situation([server], {server: ["read"]}, **mcp)
    if snapshot.judge_server(server).blocked:
        assert verdict(snapshot, f"mcp__{server}__read").blocked


# Memory.


def test_what_is_remembered_is_bounded_and_changes_no_verdict(monkeypatch):
    monkeypatch.setattr(policy, "MAX_REMEMBERED", 3)
    snapshot = situation(["fs"], denied_tools=[("fs", "t5")])
    for _ in range(2):
        judged = [verdict(snapshot, f"mcp__fs__t{i}").action for i in range(10)]
        assert judged == [BLOCK if i == 5 else ALLOW for i in range(10)]
        assert 0 < len(snapshot._policy._rulings) <= 3


def test_long_names_are_judged_and_not_remembered():
    snapshot = situation(["fs"], denied_tools=[("fs", "t*")])
    for call in (ToolCall("mcp__fs__t" + "x" * 100_000), ToolCall("t" * 100_000, server_name="fs")):
        judged = verdict(snapshot, call)
        assert judged.action is BLOCK
        assert len(judged.reason) < 500
    assert not snapshot._policy._rulings


def test_a_trace_says_of_a_name_that_it_means_no_tool():
    assert (
        situation().explain(ToolCall("Bash")).steps[0].reason == "'Bash' may mean no tool of a known server"
    )


def test_a_trace_lists_few_of_many_candidates():
    ids = [f"s{i}" for i in range(50)]
    explained = situation(ids, {i: ["x"] for i in ids}).explain(ToolCall("x"))
    assert explained.steps[0].reason.endswith("and 42 more")
    assert len(explained.verdict.candidates) == 50


def test_wrapped_calls_are_remembered_by_what_they_wrap():
    snapshot = situation(["fs"], {"fs": ["read", "rm"]}, denied_tools=[("fs", "rm")])

    def wrapped(tool):
        return ToolCall("use_mcp_tool", input={"server_name": "fs", "tool_name": tool})

    assert [verdict(snapshot, wrapped(t)).action for t in ("read", "rm", "read")] == [ALLOW, BLOCK, ALLOW]


def test_learned_names_are_judged_as_what_they_were_shown_to_be():
    base = situation(["fs"], {"fs": ["rm"]}, denied_tools=[("fs", "rm")])
    shown = Shown((Candidate("fs", "rm", tool_of("fs", {"name": "rm"}).hash),))
    assert verdict(base, "x91").action is ALLOW
    assert verdict(base, ToolCall("X91", shown=shown)).action is BLOCK


@pytest.mark.parametrize(("reaction", "action"), [("block", BLOCK), ("alert", ALLOW), ("allow", ALLOW)])
def test_a_tool_that_was_changed_on_its_way_is_judged_as_a_changed_pin_is(reaction, action):
    snapshot = situation(["fs"], {"fs": ["read"]}, version_pinning=VersionPinning(on_change=reaction))
    judged = verdict(snapshot, ToolCall("mcp__fs__read", shown=Shown(altered="description")))
    assert judged.action is action
    if reaction != "allow":
        assert judged.rule == "sandbox.mcp.version_pinning.on_change"
        assert "another description than its server does" in judged.reason


def test_an_offer_is_denied_where_no_arguments_would_save_the_call():
    etc = {"server": "fs", "tool": "write", "args": (ArgumentMatch("path", "glob", "/etc/*"),)}
    snapshot = situation(["fs"], {"fs": ["write", "rm"]}, denied_tools=[etc, ("fs", "rm")])
    assert not snapshot.judge_offer(ToolCall("mcp__fs__write")).blocked
    assert snapshot.judge_offer(ToolCall("mcp__fs__rm")).blocked
    only = situation(["fs"], {"fs": ["write"]}, **ONLY_SRV)
    assert not only.judge_offer(ToolCall("mcp__fs__write")).blocked


def test_what_is_found_in_arguments_stands_in_the_trace_and_decides_nothing():
    snapshot = situation(["fs"], {"fs": ["read"]})
    call = ToolCall("mcp__fs__read", input={"path": "~/.ssh/id_rsa"})
    explained = snapshot.explain(call)
    assert [s.step for s in explained.steps][-2:] == ["arguments", "verdict"]
    assert "credential-path" in explained.steps[-2].reason
    assert explained.verdict == snapshot.judge(call, session_id="s", charge=unlimited)
    assert "arguments" not in [
        s.step for s in snapshot.explain(ToolCall("mcp__fs__read", input={"path": "a"})).steps
    ]


CROSS = CrossServer(enabled=True)


def test_a_session_rule_blocks_with_what_led_to_it_and_is_asked_before_nothing_else_blocks():
    snapshot = situation(["db", "mail"], {"db": ["query"], "mail": ["send"]}, cross_server=CROSS)
    found = Crossing("flow", "high", "it flows", ({"server_id": "db"},))
    asked = []

    def charge(*question):
        asked.append(question)
        return found

    judged = snapshot.judge(ToolCall("mcp__mail__send", "c1"), session_id="s", charge=charge)
    assert (judged.action, judged.reason, judged.crossing) == (BLOCK, "it flows", found)
    assert judged.rule == "sandbox.mcp.cross_server.flow"
    assert [question[:2] for question in asked] == [("mail", "send")]
    audit = situation(["mail"], {"mail": ["send"]}, cross_server=CROSS, enforce_policy=False)
    judged = audit.judge(ToolCall("mcp__mail__send"), session_id="s", charge=charge)
    assert (judged.action, judged.would, judged.crossing) == (ALLOW, BLOCK, found)
    asked.clear()
    denied = situation(["mail"], {"mail": ["send"]}, cross_server=CROSS, denied_servers=["mail"])
    denied.judge(ToolCall("mcp__mail__send"), session_id="s", charge=charge)
    assert not asked


def test_where_session_rules_and_rates_are_off_nobody_is_asked():
    snapshot = situation(["mail"], {"mail": ["send"]})
    assert (
        snapshot.judge(ToolCall("mcp__mail__send"), session_id="s", charge=lambda *_: 1 / 0).action is ALLOW
    )


def test_a_bare_name_of_several_servers_is_blocked_and_each_is_reached_by_its_prefix():
    snapshot = situation(["mail", "evil"], {"mail": ["send"], "evil": ["send", "own"]}, cross_server=CROSS)
    judged = verdict(snapshot, "send")
    assert (judged.action, judged.crossing.rule) == (BLOCK, "shadowing")
    assert {related["server_id"] for related in judged.crossing.related} == {"mail", "evil"}
    assert verdict(snapshot, "mcp__mail__send").action is ALLOW
    assert verdict(snapshot, "mcp__evil__send").action is ALLOW
    assert verdict(snapshot, "own").action is ALLOW
    off = situation(["mail", "evil"], {"mail": ["send"], "evil": ["send"]})
    assert verdict(off, "send").action is ALLOW


def test_a_tool_that_shadows_is_blocked_and_what_it_shadows_is_not():
    snapshot = situation(["mail", "evil"], {"mail": ["send"], "evil": ["fact"]}, cross_server=CROSS)
    tools = {key: replace(t, shadows=t.server_id == "evil") for key, t in snapshot.registry.tools.items()}
    marked = replace(snapshot, registry=Registry(snapshot.registry.servers, tools))
    judged = verdict(marked, "mcp__evil__fact")
    assert (judged.action, judged.crossing.rule) == (BLOCK, "shadowing")
    assert verdict(marked, "mcp__mail__send").action is ALLOW
    off = replace(marked, config=Config())
    assert verdict(off, "mcp__evil__fact").action is ALLOW


def test_the_trace_says_that_the_session_decides():
    snapshot = situation(["mail"], {"mail": ["send"]}, cross_server=CROSS)
    steps_taken = [s.step for s in snapshot.explain(ToolCall("mcp__mail__send")).steps]
    assert steps_taken == ["name", "server", "tool", "pin", "session", "verdict"]


ONLY_SRV = {
    "denied_tools": [("*", "*")],
    "allowed_tools": [{"server": "fs", "tool": "write", "args": (ArgumentMatch("path", "glob", "/srv/*"),)}],
}


def test_rules_over_arguments_decide_call_by_call_and_no_verdict_on_a_name_stands():
    etc = {"server": "fs", "tool": "write", "args": (ArgumentMatch("path", "glob", "/etc/*"),)}
    snapshot = situation(["fs"], {"fs": ["write", "read"]}, denied_tools=[etc])
    calls = {
        path: ToolCall("mcp__fs__write", input={"path": path}) for path in ("/srv/x", "/etc/x", "/srv/y")
    }
    assert [verdict(snapshot, call).action for call in calls.values()] == [ALLOW, BLOCK, ALLOW]
    judged = verdict(snapshot, calls["/etc/x"])
    assert judged.rule == "sandbox.mcp.denied_tools[0]"
    assert "its argument $.path matches the glob '/etc/*'" in judged.reason
    assert not snapshot.stands(calls["/srv/x"])
    assert snapshot.stands(ToolCall("mcp__fs__read"))


def test_a_rule_over_arguments_narrowed_to_a_version_is_about_no_other():
    args = (ArgumentMatch("path", "glob", "/etc/*"),)
    rule = {"tool": "write", "content_hash": tool_of("fs", {"name": "write"}).hash, "args": args}
    call = ToolCall("mcp__fs__write", input={"path": "/etc/x"})
    for version, action in (({"name": "write"}, BLOCK), ({"name": "write", "title": "2"}, ALLOW)):
        assert verdict(situation(["fs"], {"fs": [version]}, denied_tools=[rule]), call).action is action


def test_the_first_rule_in_the_file_is_the_one_that_is_named():
    etc = {"server": "fs", "tool": "write", "args": (ArgumentMatch("path", "glob", "/etc/*"),)}
    call = ToolCall("mcp__fs__write", input={"path": "/etc/x"})
    for rules, named in (([etc, ("fs", "write")], 0), ([("fs", "write"), etc], 0), ([("a", "b"), etc], 1)):
        judged = verdict(situation(["fs"], {"fs": ["write"]}, denied_tools=rules), call)
        assert judged.rule == f"sandbox.mcp.denied_tools[{named}]"


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize(
    "policy_", [ONLY_SRV, {"tool_policy": "allowlist", "allowed_tools": ONLY_SRV["allowed_tools"]}]
)
def test_an_allowed_rule_over_arguments_allows_nothing_else(policy_, seen):
    snapshot = situation(["fs"], {"fs": ["write"]} if seen else {}, **policy_)
    assert verdict(snapshot, ToolCall("mcp__fs__write", input={"path": "/srv/x"})).action is ALLOW
    refused = verdict(snapshot, ToolCall("mcp__fs__write", input={"path": "/etc/x"}))
    assert refused.action is BLOCK
    assert "with these arguments (allowed_tools[0]" in refused.reason
    assert verdict(snapshot, ToolCall("mcp__fs__write", input='{"path": "/srv/x"')).action is BLOCK


def test_a_tool_of_an_unknown_server_is_judged_by_rules_over_arguments_for_every_server():
    rm = {"server": "*", "tool": "wipe", "args": (ArgumentMatch("force", "equals", True),)}
    snapshot = situation([], denied_tools=[rm])
    assert verdict(snapshot, ToolCall("wipe", input={"force": True})).action is BLOCK
    assert verdict(snapshot, ToolCall("wipe", input={"force": False})).action is ALLOW
    assert verdict(snapshot, ToolCall("mcp__new__wipe", input={"force": "true"})).action is BLOCK


def test_a_wrapped_call_is_judged_by_its_inner_arguments():
    etc = {"server": "fs", "tool": "write", "args": (ArgumentMatch("path", "glob", "/etc/*"),)}
    snapshot = situation(["fs"], {"fs": ["write"]}, denied_tools=[etc])
    for arguments, action in (('{"path": "/etc/x"}', BLOCK), ({"path": "/srv/x"}, ALLOW), ("{", BLOCK)):
        call = ToolCall(
            "use_mcp_tool", input={"server_name": "fs", "tool_name": "write", "arguments": arguments}
        )
        assert verdict(snapshot, call).action is action


@pytest.mark.parametrize(("pin_binary", "action"), [(True, "block"), (False, "allow")])
def test_a_server_that_is_another_blocks_every_call_of_its_tools_and_of_no_other(
    pin_binary: bool, action: str
) -> None:
    changed = Identity("fs", Aspect.BINARY, PinState.CHANGED)
    declared = [replace(server("fs"), pin_binary=pin_binary), server("web")]
    known = registry(declared, {"fs": ["ls"], "web": ["get"]})
    judge = policy.Policy(Mcp(servers=tuple(declared)), known, Pins.of((), [changed])).judge
    found = judge(ToolCall("mcp__fs__ls"), "default", lambda *_: True)
    assert (found.action, judge(ToolCall("get"), "default", lambda *_: True).action) == (action, "allow")
    assert pin_binary is ("the binary of server fs" in found.reason)
