"""Servers go under the shim and come out again to the byte, whatever the file's spacing, comments and order; the rest is untouched."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.mcp_clients import user_file
from agentsh_net.mcp_clients.editing import Keys, UneditableError, entry, install, uninstall

PROGRAM = ["/usr/bin/agentsh-net"]
FS: Keys = ("mcpServers", "fs")

JSON = {
    "plain": '{"mcpServers":{"fs":{"command":"npx","args":["-y","server"]}}}',
    "spaced": '{\n  "mcpServers" : {\n    "fs" : {\n      "command" : "npx" ,\n      "args" : [\n        "-y" , "server"\n      ] }\n  }\n}\n',
    "args first": '{"mcpServers": {"fs": {"args": ["-y", "server"], "command": "npx"}}}',
    "comments": '{ // mine\n "mcpServers": { "fs": { "command": /* run */ "npx", "args": [ // all\n "-y", /* , */ "server", // last\n ], }, }, }\n',
    "escapes": '{"mcpServers":{"fs":{"command":"n\\u0070x","args":["\\/a","\\ud83d\\ude00","// no comment"]}}}',
    "windows": '{\r\n\t"mcpServers": {\r\n\t\t"fs": {"command": "npx", "args": ["a"]}\r\n\t}\r\n}',
    "unicode": '{"mcpServers":{"ünï":{"command":"x"},"fs":{"command":"nüx","args":["日本"]}}}',
    "no args": '{"mcpServers":{"fs":{"command":"npx","env":{"args":"x"}}}}',
    "no args, alone": '{"mcpServers":{"fs":{ "command" : "npx" }}}',
    "empty args": '{"mcpServers":{"fs":{"command":"npx","args":[]}}}',
    "empty args, spaced": '{"mcpServers":{"fs":{"command":"npx", "args" : [ \n ]}}}',
    "list": '{"mcpServers":{"fs":{"type":"local","command":[ "npx" , "-y"]}}}',
    "list of one": '{"mcpServers":{"fs":{"command":["npx"]}}}',
}  # fmt: skip

TOML = {
    "plain": '[mcpServers.fs]\ncommand = "npx"\nargs = ["-y", "server"]\n',
    "among others": 'model = "x" # m\n\n[mcpServers.fs] # files\n  command=\'npx\' # run\n  args = [ # all\n    "-y", # one\n    \'C:\\x\',\n  ]\n[mcpServers.fs.env]\nargs = "x"\n[other]\ncommand = "y"\n',
    "args first": '[mcpServers.fs]\nargs = ["-y"]\ncommand = "npx"\n',
    "quoted": '[ mcpServers . "fs" ]\ncommand = "npx"\n',
    "windows": '[mcpServers.fs]\r\ncommand = "npx"\r\nargs = []\r\n',
    "no args": '[mcpServers.fs]\ncommand = "npx"\nenv = { A = "1" }',
}  # fmt: skip

CASES = [("json", name, text) for name, text in JSON.items()] + [
    ("toml", name, text) for name, text in TOML.items()
]


def commands(text: str, kind: str, places: list[Keys]) -> dict[Keys, list[str]]:
    """Return the words of each entry's command as a text has them."""
    found = {keys: entry(text, kind, keys) for keys in places}
    return {
        keys: [*(e["command"] if isinstance(e["command"], list) else [e["command"]]), *e.get("args", [])]
        for keys, e in found.items()
    }


def parse(kind: str, text: str) -> Any:
    return tomllib.loads(text) if kind == "toml" else user_file.parse_json(text)


@pytest.mark.parametrize(("kind", "name", "text"), CASES, ids=[f"{k} {n}" for k, n, _ in CASES])
def test_in_and_out_again_is_the_same_to_the_byte(kind: str, name: str, text: str) -> None:
    edited = install(text, kind, {FS: "fs"}, PROGRAM)
    own = commands(text, kind, [FS])[FS]
    assert commands(edited, kind, [FS])[FS] == [*PROGRAM, "shim", "--server", "fs", "--", *own]
    assert install(edited, kind, {FS: "fs"}, PROGRAM) == edited
    assert uninstall(edited, kind, [FS]) == text
    assert uninstall(text, kind, [FS]) == text


@pytest.mark.parametrize(("kind", "name", "text"), CASES, ids=[f"{k} {n}" for k, n, _ in CASES])
def test_only_the_command_becomes_another(kind: str, name: str, text: str) -> None:
    before, after = parse(kind, text), parse(kind, install(text, kind, {FS: "fs"}, PROGRAM))
    for value in (before, after):
        entry = value["mcpServers"]["fs"]
        entry.pop("command")
        entry.pop("args", None)
    assert before == after


def test_what_the_user_changes_meanwhile_stays() -> None:
    edited = install(JSON["spaced"], "json", {FS: "fs"}, PROGRAM)
    changed = edited.replace('"server"', '"server", "/data"').replace("{\n", '{ "new" : 1,\n', 1)
    expected = JSON["spaced"].replace('"server"', '"server", "/data"').replace("{\n", '{ "new" : 1,\n', 1)
    assert uninstall(changed, "json", [FS]) == expected


def test_an_option_that_the_user_added_goes_with_the_shim() -> None:
    edited = install(JSON["plain"], "json", {FS: "fs"}, PROGRAM).replace(
        '"--server"', '"--hide-denied", "--server"'
    )
    assert uninstall(edited, "json", [FS]) == JSON["plain"]


def test_several_servers_of_a_file_each_get_their_id() -> None:
    text = '{"projects":{"/a/b":{"mcpServers":{"fs":{"command":"x"}}}},"mcpServers":{"fs":{"command":"y","args":["z"]}}}'
    project: Keys = ("projects", "/a/b", "mcpServers", "fs")
    edited = install(text, "json", {FS: "fs", project: "fs-2"}, PROGRAM)
    got = commands(edited, "json", [FS, project])
    assert (got[FS][3], got[project][3]) == ("fs", "fs-2")
    assert uninstall(edited, "json", [project, FS]) == text


def test_a_program_of_several_words() -> None:
    program = ["/opt/python", "-m", "agentsh_net", "--socket", "/tmp/ü.sock"]
    for text in JSON.values():
        edited = install(text, "json", {FS: "fs"}, program)
        assert commands(edited, "json", [FS])[FS][:5] == program
        assert uninstall(edited, "json", [FS]) == text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("json", '{"mcpServers":{"fs":{"command":"a","command":"b"}}}'),
        ("json", '{"mcpServers":{"fs":{"command":"a","args":"b"}}}'),
        ("json", '{"mcpServers":{"fs":{"command":"a","args":[1]}}}'),
        ("json", '{"mcpServers":{"fs":{"command":7}}}'),
        ("json", '{"mcpServers":{}}'),
        ("json", "{"),
        ("toml", 'mcpServers = { fs = { command = "x" } }'),
        ("toml", '[mcpServers]\nfs.command = "x"'),
        ("toml", '[mcpServers.fs]\ncommand = """x"""'),
        ("toml", '[mcpServers.fs]\ncommand = "x"\nargs = [["y"]]'),
        ("toml", '[mcpServers.fs]\ncommand = "x"\nargs = [1]'),
        ("toml", '[mcpServers.fs]\n"command" = "x"'),
        ("toml", 'text = """\n[mcpServers.fs]\ncommand = "evil"\n"""\n[mcpServers.fs]\ncommand = "x"'),
        ("toml", "x ="),
    ],
)
def test_what_cannot_be_edited_for_certain_is_left_alone(kind: str, text: str) -> None:
    with pytest.raises(UneditableError):
        install(text, kind, {FS: "fs"}, PROGRAM)


SPACE = st.sampled_from(["", " ", "\n", "\t ", " // c\n", "/* , */"])
WORDS = st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=4)


@given(
    WORDS, st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), SPACE, SPACE, SPACE, st.booleans()
)
def test_any_words_and_any_spacing_come_back(
    args: list[str], command: str, a: str, b: str, c: str, first: bool
) -> None:
    listed = f"[{a}" + f"{b},{c}".join(json.dumps(word) for word in args) + f"{b}]"
    members = [f'"command"{a}:{b}{json.dumps(command)}{c}', f'"args"{c}:{a}{listed}{b}']
    text = f'{a}{{"mcpServers":{b}{{"fs":{c}{{{",".join(members[:: -1 if first else 1])}}}}}}}{a}'
    if user_file.parse_json(text)["mcpServers"]["fs"]["command"].rpartition("/")[2] == "agentsh-net":
        return
    edited = install(text, "json", {FS: "fs"}, PROGRAM)
    assert commands(edited, "json", [FS])[FS][5:] == [command, *args]
    assert uninstall(edited, "json", [FS]) == text


@pytest.mark.parametrize("odd", ['{"command":5}', '{"args":["x"]}', "null", '{"command":"x","args":{}}'])
def test_what_is_not_ours_is_nothing_to_take_out_however_odd_it_is(odd: str) -> None:
    text = f'{{"mcpServers":{{"fs":{odd}}}}}'
    assert uninstall(text, "json", [FS]) == text
