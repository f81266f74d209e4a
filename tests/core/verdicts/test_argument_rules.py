"""A denied rule over arguments holds in every spelling a server may take for the same; an allowed one only for what is written."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import ArgumentMatch
from agentsh_net.core.inspect import regex_cost
from agentsh_net.core.model import ToolCall
from agentsh_net.core.verdicts.argument_rules import MAX_COMPARED, ArgumentRule
from agentsh_net.core.verdicts.given import Given, given_by


def rule(kind, value, path="path"):
    return ArgumentRule([ArgumentMatch(path, kind, value)])


def denies(made, **arguments):
    return bool(made.denies(Given(arguments)))


def allows(made, **arguments):
    return made.allows(Given(arguments))


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/ETC/passwd", "/tmp/../etc/passwd", "//etc//passwd", "/./etc/passwd", "file:///etc/passwd",
     "/%65tc/passwd", "\uff0fetc/passwd", " /etc/passwd", "/a/b/../../etc/./x", "/a/../etc/x\0/../../b", "/a/../etc/x%00/../../b"],
)  # fmt: skip
def test_a_denied_path_is_denied_in_every_spelling(path):
    assert denies(rule("glob", "/etc/*"), path=path)


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/srv/data/a", True), ("/srv/data/a/b", True), ("/srv/data/../../etc/passwd", False), ("/srv/data//a", False),
     ("/SRV/data/a", False), ("\uff0fsrv/data/a", False), ("/srv/data/%2e%2e/x", False), ("/srv/data/a%20b", True), (5, False), (None, False)],
)  # fmt: skip
def test_an_allowed_path_is_allowed_as_it_is_written(path, allowed):
    assert allows(rule("glob", "/srv/data/*"), path=path) is allowed


@pytest.mark.parametrize("end", ["\0", "%00"])
def test_a_value_with_a_nul_is_what_stands_before_it_too_and_never_allowed(end):
    assert denies(rule("equals", "/etc/passwd"), path=f"/etc/passwd{end}.txt")
    assert denies(rule("regex", r"passwd$"), path=f"/etc/passwd{end}.txt")
    assert denies(rule("glob", "/etc/passwd"), path=f"/etc/passwd{end}.txt")
    assert denies(rule("glob", "*.txt"), path=f"/etc/passwd{end}.txt")  # to who reads all of it
    assert not allows(rule("glob", "*.txt"), path=f"passwd{end}.txt")
    assert not allows(rule("regex", r".*\.txt"), path=f"passwd{end}.txt")


def test_a_key_with_a_nul_is_what_stands_before_it_too():
    made = rule("glob", "/etc/*")
    assert made.denies(Given({"path\0x": "/etc/passwd", "path": "/srv/a"}))
    assert not rule("glob", "/srv/*").allows(Given({"path\0x": "/srv/b"}))
    assert not rule("glob", "/srv/*").allows(Given({"path\0x": "/etc/passwd", "path": "/srv/a"}))


def test_a_relative_path_climbs_no_further_than_it_says():
    made = rule("glob", "../../secret/*")
    assert denies(made, path="../x/../../secret/a")
    assert not denies(made, path="../x/../secret/a")


def test_an_origin_is_no_empty_segment():
    made = rule("glob", "https://api.example.com/v1/*", "url")
    assert allows(made, url="https://api.example.com/v1/x")
    assert not allows(made, url="https://api.example.com/v1/../admin")
    assert denies(made, url="https://API.example.com/v0/../v1/x")


@pytest.mark.parametrize(
    ("wanted", "value", "strictly", "loosely"),
    [(5, 5, True, True), (5, 5.0, True, True), (5, "5", False, True), (True, True, True, True), (True, 1, False, False),
     (1, True, False, False), (True, False, False, False), (False, "false", False, True), (True, "true", False, True), (None, None, True, True), (None, "null", False, True), (None, False, False, False), ("a", "a ", False, True),
     ("a", ["a"], False, True), (10**30, 10**30, True, True)],
)  # fmt: skip
def test_values_are_equal_as_json_has_it_and_denied_as_lenient_servers_read_them(
    wanted, value, strictly, loosely
):
    assert allows(rule("equals", wanted), path=value) is strictly
    assert denies(rule("equals", wanted), path=value) is loosely
    assert denies(rule("in", ("x", wanted)), path=value) is loosely


def test_a_denied_rule_needs_one_of_several_values_and_an_allowed_one_all():
    made = rule("in", ("a", "b"), "files[*]")
    assert denies(made, files=["x", "a"])
    assert not allows(made, files=["x", "a"])
    assert allows(made, files=["b", "a"])
    assert not allows(made, files=[])
    assert not denies(made, files=[])


def test_a_key_in_another_case_counts_against_the_call():
    made = rule("equals", "a")
    assert denies(made, Path="a")
    assert not allows(made, Path="a")
    assert not allows(made, path="a", Path="b")
    assert allows(made, path="a", Path="a")


def test_a_regex_is_searched_where_denied_and_matched_whole_where_allowed():
    made = rule("regex", "rm +-rf", "command")
    assert denies(made, command="cd / && RM  -rf x")
    assert not allows(made, command="cd / && rm -rf x")
    assert allows(made, command="rm -rf")


def test_all_conditions_must_hold():
    made = ArgumentRule([ArgumentMatch("mode", "in", ("w",)), ArgumentMatch("path", "glob", "/etc/*")])
    assert denies(made, mode="w", path="/etc/x")
    assert not denies(made, mode="r", path="/etc/x")
    assert allows(made, mode="w", path="/etc/x")
    assert not allows(made, mode="r", path="/etc/x")
    assert not allows(made, mode="w", path="/srv/x")
    assert made.shown == "$.mode is one of ('w',) and $.path matches the glob '/etc/*'"


@pytest.mark.parametrize(
    "call",
    [
        ToolCall("x", input="{not json"),
        ToolCall("x", input=[1]),
        ToolCall("x", doubt="why"),
        ToolCall("x", input={"path": "a"}, doubt="why"),
        ToolCall("x", hypothetical=True),
    ],
)
def test_arguments_that_cannot_be_read_are_denied_and_never_allowed(call):
    made = rule("equals", "a")
    assert "cannot be judged" in made.denies(given_by(call))
    assert not made.allows(given_by(call))


def test_a_text_too_long_for_a_regex_is_denied_and_the_reason_says_so():
    open_ended = rule("regex", "rm.*-rf", "command")
    assert "too large" in open_ended.denies(Given({"command": "x" * 5000}))
    assert not open_ended.allows(Given({"command": "rm" + "x" * 5000 + "-rf"}))
    narrow = rule("regex", "rm -rf", "command")
    assert denies(narrow, command="x" * 50_000 + "rm -rf")
    assert not denies(narrow, command="x" * 50_000)


def test_a_regex_finds_what_it_denies_wherever_a_long_text_has_it():
    made, window = rule("regex", "rm -rf", "command"), regex_cost.window("rm -rf")
    for before in (*range(window // 2 - 8, window // 2 + 8), *range(window - 8, 2 * window + 8), 5 * window):
        for after in (0, window):
            assert denies(made, command="x" * before + "rm -rf" + "x" * after), (before, after)


def test_a_regex_whose_match_may_be_longer_than_windows_overlap_denies_long_texts():
    for length, denied in ((100, False), (3000, True)):
        made = rule("regex", f"rm.{{0,{length}}}-rf", "command")
        assert denies(made, command="x" * 2 * regex_cost.window("rm -rf")) is denied


@pytest.mark.parametrize("kind", ["glob", "equals", "in"])
@pytest.mark.parametrize(
    "value", ["x" * (MAX_COMPARED + 1), ["x" * (MAX_COMPARED // 8)] * 9], ids=["one text", "several"]
)
def test_more_text_than_a_rule_compares_is_denied_and_never_allowed(kind, value):
    path = "path[*]" if isinstance(value, list) else "path"
    made = rule(kind, {"glob": "x*", "equals": "y", "in": ["y"]}[kind], path)
    assert "too large" in rule(kind, "y" if kind != "in" else ["y"], path).denies(Given({"path": value}))
    assert not allows(made, path=value)


def test_a_glob_without_a_slash_is_no_path():
    assert allows(rule("glob", "*"), path="/srv/../etc")
    assert allows(rule("glob", "v1.*"), path="v1.//2/")


HOSTILE = ArgumentRule([ArgumentMatch("$..*", "regex", "a{0,50}b{0,50}c")])


@pytest.mark.parametrize("texts", [["a" * 200] * 200, ["a" * 200_000]], ids=["many", "one long one"])
def test_hostile_text_is_denied_where_searching_it_costs_too_much(texts):
    assert "too large" in HOSTILE.denies(Given({"list": texts}))


def test_hostile_text_costs_no_seconds():
    value = {"list": ["a" * 900] * 3000}
    began = time.process_time()
    HOSTILE.denies(Given(value))
    assert time.process_time() - began < 5  # without the bound it would be minutes


@given(st.text(max_size=40))
def test_law_what_is_allowed_by_a_glob_would_be_denied_by_it(text):
    """An allowed rule never matches more than a denied one with the same words."""
    made = rule("glob", "*a/*")
    assert not allows(made, path=text) or denies(made, path=text)


@pytest.mark.parametrize(
    "value", [["/etc/passwd"], {"a": "/etc/passwd"}, ["/tmp", [{"b": ["/tmp", "/etc/passwd"]}]]]
)
def test_a_value_within_the_one_that_is_selected_denies_and_never_allows(value):
    made = rule("glob", "/etc/*")
    assert denies(made, path=value)
    assert not allows(made, path=value)
    assert not denies(made, other=value)


def test_a_container_of_nothing_costs_no_more_than_one_of_text():
    began = time.process_time()
    assert denies(rule("glob", "/etc/*"), path=[[]] * 1_000_000)  # too much to look through
    assert time.process_time() - began < 2


@pytest.mark.parametrize(
    "value", ["DELETE", "delete", " Delete ", "ｄｅｌｅｔｅ", "de\u200blete", ["delete"]]
)
@pytest.mark.parametrize("made", [rule("equals", "Delete", "mode"), rule("in", ["drop", "DELETE"], "mode")])
def test_a_denied_word_is_denied_in_every_spelling_and_allowed_as_it_is_written(made, value):
    assert denies(made, mode=value)
    assert not denies(made, mode="deleted")
    assert allows(rule("equals", "Delete", "mode"), mode=value) is (value == "Delete")
