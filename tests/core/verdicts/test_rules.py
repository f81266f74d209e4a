"""The first rule that matches is the one that is named, however the list is stored."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import ArgumentMatch, Mcp, ServerRule, ToolRule
from agentsh_net.core.errors import ConfigError
from agentsh_net.core.naming import globs
from agentsh_net.core.verdicts.rules import Rules, full_hash


def denied(*rules):
    return Rules(Mcp(denied_tools=tuple(ToolRule(*r) for r in rules)))


def test_a_rule_is_shown_by_its_place_and_what_it_says():
    rules = denied(("prod-db", "drop_*"), ("*", "rm"), ("fs", "*", "ab" * 32))
    first, second, third = rules.denied_tools.rules
    assert first.shown == "denied_tools[0] (server prod-db, tool drop_*)"
    assert second.shown == "denied_tools[1] (tool rm)"
    assert third.shown == f"denied_tools[2] (server fs, version sha256:{'ab' * 32})"
    assert first.path == "sandbox.mcp.denied_tools[0]"


def test_the_path_of_the_file_is_kept():
    rules = Rules(Mcp(denied_servers=(ServerRule("bad", "policy.d/x.denied_servers[7]"),)))
    assert rules.denied_servers.first("bad").path == "policy.d/x.denied_servers[7]"


def test_the_bare_catch_all_of_a_deny_list_is_its_default():
    rules = denied(("*", "*"), ("**", " * "), ("fs", "*"), ("*", "*", "ab" * 32))
    assert rules.other_tools.order == 0
    assert [r.order for r in rules.denied_tools.rules] == [2, 3]
    servers = Rules(Mcp(denied_servers=(ServerRule("*"), ServerRule("x"))))
    assert servers.other_servers.order == 0
    assert [r.order for r in servers.denied_servers.rules] == [1]


def test_a_version_narrows_a_rule_to_it():
    rules = denied(("fs", "read", "AB" * 32)).denied_tools
    assert rules.first("fs", "read", "sha256:" + "ab" * 32)
    assert rules.first("fs", "read", "sha256:" + "cd" * 32) is None
    assert rules.first("fs", "read") is None  # not known to be that version
    assert full_hash("") == ""


def test_only_rules_over_every_server_hold_for_an_unknown_one():
    rules = denied(
        ("fs", "rm"), ("f*", "kill"), ("*", "format"), ("*", "wipe_*"), ("*", "x", "ab" * 32)
    ).denied_tools
    assert {t for t in ("rm", "kill", "format", "wipe_all", "x") if rules.first_anywhere(t)} == {
        "format",
        "wipe_all",
    }


def narrowed(server, tool, content_hash=""):
    return ToolRule(server, tool, content_hash, args=(ArgumentMatch("path", "glob", "/etc/*"),))


def test_a_rule_over_arguments_is_no_catch_all_and_stands_apart_from_those_over_names():
    rules = Rules(Mcp(denied_tools=(narrowed("*", "*"), ToolRule("*", "rm"))))
    assert rules.other_tools is None
    assert rules.denied_tools.looks_at_arguments
    assert rules.denied_tools.first("fs", "read") is None
    assert rules.denied_tools.first("fs", "rm").order == 1


def test_rules_over_arguments_are_those_of_this_server_tool_and_version_in_the_order_of_the_file():
    version = "sha256:" + "ab" * 32
    rules = Rules(
        Mcp(denied_tools=(narrowed("fs", "re*"), narrowed("*", "read"), narrowed("web", "read"), narrowed("*", "w*"),
                          narrowed("*", "read", version), narrowed("*", "*")))
    ).denied_tools  # fmt: skip
    assert [r.order for r in rules.narrowed("fs", "read")] == [0, 1, 5]
    assert [r.order for r in rules.narrowed("fs", "read", version)] == [0, 1, 4, 5]
    assert [r.order for r in rules.narrowed("web", "write", version)] == [3, 5]
    assert [r.order for r in rules.narrowed_anywhere("read")] == [1, 5]
    assert [r.order for r in rules.narrowed_anywhere("read", by_name=True)] == [1]
    assert Rules(Mcp()).denied_tools.narrowed("fs", "read") == ()


def test_what_deny_rules_name_literally_is_listed():
    rules = denied((" Prod-DB ", "drop.table"), ("*", "rm"), ("fs", "*"), ("f*", "kill"))
    assert list(rules.denied_pairs()) == [("Prod-DB", "drop.table")]
    assert list(rules.denied_anywhere()) == ["rm", "kill"]
    assert list(rules.denied_ids()) == ["Prod-DB", "fs"]


def test_a_bad_pattern_is_an_error_with_its_place():
    with pytest.raises(ConfigError) as raised:
        denied(("fs", "x"), ("[", "x"))
    assert raised.value.problems[0].path == "sandbox.mcp.denied_tools[1]"


words = st.sampled_from(
    ["a", "ab", "b", "ba", "a*", "*b", "*", "?", "[ab]", "a?", "*a*", "b*", "aab*", "AB*", "ab?", "ab*b*", "aa[!a]*"]
)  # fmt: skip
names = st.text(alphabet="ab", min_size=1, max_size=4)


@given(st.lists(st.tuples(words, words), max_size=8), names, names)
def test_the_tables_name_the_rule_that_a_plain_search_names(patterns, server, tool):
    rules = denied(*patterns)
    plain = [
        i
        for i, (s, t) in enumerate(patterns)
        if (s, t) != ("*", "*") and globs.parse(s).matches(server) and globs.parse(t).matches(tool)
    ]
    found = rules.denied_tools.first(server, tool)
    assert (found.order if found else None) == (plain[0] if plain else None)
    anywhere = [i for i in plain if patterns[i][0] == "*"]
    found = rules.denied_tools.first_anywhere(tool)
    assert (found.order if found else None) == (anywhere[0] if anywhere else None)
    of_servers = Rules(Mcp(denied_servers=tuple(ServerRule(s) for s, _ in patterns))).denied_servers
    plain = [i for i, (s, _) in enumerate(patterns) if s != "*" and globs.parse(s).matches(server)]
    found = of_servers.first(server)
    assert (found.order if found else None) == (plain[0] if plain else None)
