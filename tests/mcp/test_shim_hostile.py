"""A server that strays from the protocol neither slips a tool past its pin, nor a request past policy, nor hangs its client."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from running import Running, running

ROOT = Path(__file__).parent.parent.parent
PROGRAM = ROOT / "tests" / "mcp_peers" / "hostile_stdio.py"


def policy(**mcp: Any) -> dict[str, Any]:
    servers = [{"id": "s", "type": "stdio", "command": "declared"}]
    return {
        "sandbox": {"mcp": {"servers": servers, **mcp}},
        "proxy": {"mode": "disabled"},
        "network": {"mode": "off"},
    }


class Talk:
    """A client that says exactly what the test says."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self._read = bytearray()

    def send(self, value: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write((value if isinstance(value, bytes) else json.dumps(value).encode()) + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        """Return the next line, or what there is at the end."""
        assert self.process.stdout is not None
        while b"\n" not in self._read:
            ready, _, _ = select.select([self.process.stdout], [], [], 20)
            assert ready, "nothing came"
            data = os.read(self.process.stdout.fileno(), 1 << 20)
            self._read += data
            if not data:
                break
        end = self._read.find(b"\n") + 1 or len(self._read)
        line = bytes(self._read[:end])
        del self._read[:end]
        return line

    def ask(self, method: str, id_: Any, **params: Any) -> Any:
        """Send a request and return the first line that is JSON and has its id."""
        self.send({"jsonrpc": "2.0", "id": id_, "method": method, "params": params})
        while line := self.line():
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == id_ and "method" not in message:
                return message
        raise AssertionError("the server ended")

    def list(self, id_: Any = 1, **params: Any) -> Any:
        return self.ask("tools/list", id_, **params)

    def call(self, id_: Any = 2, tool: str = "ls") -> Any:
        return self.ask("tools/call", id_, name=tool, arguments={})

    def got(self) -> list[str]:
        """What the server got, once it has ended."""
        assert self.process.stdin is not None and self.process.stderr is not None
        self.process.stdin.close()
        return [
            line.decode().removeprefix("GOT ").strip()
            for line in self.process.stderr
            if line.startswith(b"GOT ")
        ]


@contextmanager
def talk(here: Running, kind: str, *options: str) -> Iterator[Talk]:
    command = [
        sys.executable,
        "-m",
        "agentsh_net",
        "--socket",
        str(here.folder / "control.sock"),
        "shim",
        "--server",
        "s",
    ]
    command += [*options, "--", sys.executable, "-u", str(PROGRAM), kind]
    env = os.environ | {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proxy")))}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        try:
            it = Talk(process)
            it.ask("initialize", 0)
            yield it
        finally:
            process.kill()


@contextmanager
def scene(folder: Path, kind: str, **mcp: Any) -> Iterator[tuple[Running, Talk]]:
    with running(folder, policy(**mcp)) as here, talk(here, kind) as it:
        yield here, it


def blocked(answer: Any, why: str) -> bool:
    return "error" in answer and why in answer["error"]["message"]


def test_a_resource_that_a_rule_denies_never_reaches_the_server(tmp_path: Path) -> None:
    rule = {"server": "s", "tool": "resources/read", "args": {"uri": {"glob": "/etc/*"}}}
    with scene(tmp_path, "honest", denied_tools=[rule]) as (here, it):
        assert blocked(it.ask("resources/read", 1, uri="file:///etc/passwd"), "denied by denied_tools[0]")
        it.send({"jsonrpc": "2.0", "method": "resources/read", "params": {"uri": "/etc/passwd"}})
        assert "result" in it.ask("resources/read", 2, uri="file:///srv/notes")
        assert it.got().count("resources/read") == 1
        told = here.await_event("mcp_tool_called", lambda e: e["jsonrpc_id"] == 2)
        assert (told["action"], told["tool_name"]) == ("allow", "resources/read")
        told = here.await_event("mcp_tool_called", lambda e: e["jsonrpc_id"] == 1)
        assert (told["action"], told["rule"]) == ("block", "sandbox.mcp.denied_tools[0]")
        assert len(here.events("mcp_tool_called")) == 3


def test_a_rug_pull_is_stopped_by_the_pin(tmp_path: Path) -> None:
    with scene(tmp_path, "rug-pull") as (here, it):
        it.list(1)
        assert "result" in it.call(2)
        it.list(3)
        assert blocked(it.call(4), "not the version that was trusted")
        assert it.got().count("tools/call") == 1
        event = here.await_event("mcp_tool_changed")
        assert [change["path"] for change in event["changes"]] == ["$.description"]
        here.await_event("mcp_tool_called", lambda e: e["action"] == "block")
        called = [e["action"] for e in here.events("mcp_tool_called")]
        assert called == ["allow", "block"]


def test_a_rug_pull_while_no_daemon_ran_is_stopped_by_the_pin_in_the_store(tmp_path: Path) -> None:
    with scene(tmp_path, "honest") as (here, it):
        it.list()
        here.await_event("mcp_tool_seen")
    with scene(tmp_path, "twice") as (here, it):
        it.list()
        assert blocked(it.call(), "not the version that was trusted")


def test_two_versions_under_one_name_are_not_the_pinned_one(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        with talk(here, "honest") as it:
            it.list()
            assert "result" in it.call()
        with talk(here, "twice") as it:
            it.list()
            assert blocked(it.call(), "not the version that was trusted")


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("duplicate-key", "read differently"),
        ("carriage-return", "read differently"),
        ("id-as-text", "an id that nobody used"),
        ("id-as-float", "read differently"),
    ],
)
def test_a_listing_that_clients_may_read_differently_is_refused(
    tmp_path: Path, kind: str, reason: str
) -> None:
    with scene(tmp_path, kind) as (here, it):
        assert blocked(it.list(), reason)
        event = here.await_event("mcp_message_uninspected")
        assert (event["action"], event["cause"], event["sender"], event["server_id"]) == (
            "block",
            "hostile",
            "server",
            "s",
        )
        assert not here.events("mcp_tool_seen")
        assert "result" in it.call()  # unseen, and fail_closed is false


def test_a_second_answer_to_a_listing_is_refused_and_told_of(tmp_path: Path) -> None:
    with scene(tmp_path, "answers-twice") as (here, it):
        assert it.list()["result"]["tools"][0]["description"] == "List files."
        assert "result" in it.call()
        event = here.await_event("mcp_message_uninspected")
        assert (event["action"], event["cause"]) == ("block", "hostile")
        assert event["reason"].startswith("a list of tools under an id that nobody used")


def test_pages_without_an_end_are_refused_where_nothing_passes_unread(tmp_path: Path) -> None:
    with scene(tmp_path, "endless-pages", fail_closed=True) as (_, it):
        it.list(1)
        assert blocked(it.list(2, cursor="again"), "repeats a cursor")
        assert "result" in it.call(3)


def test_noise_on_the_output_passes_or_is_cut_by_fail_closed(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "closed").mkdir()
    with scene(tmp_path / "open", "noise") as (here, it):
        it.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "ls"}})
        lines = [it.line() for _ in range(6)]
        assert lines[:5] == [
            b"Loading model... 50%\n",
            b"\x1b[31mred\x1b[0m\n",
            b"\xff\xfe\n",
            b"[1,2]\n",
            b"{}\n",
        ]
        assert json.loads(lines[5])["id"] == 5
        assert here.await_event("mcp_message_uninspected")["action"] == "allow"
    with scene(tmp_path / "closed", "noise", fail_closed=True) as (here, it):
        it.list(1)
        it.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "ls"}})
        lines = [it.line(), it.line()]
        assert lines[0] == b"{}\n"  # a message without a meaning is no noise
        assert json.loads(lines[1])["id"] == 5
        assert here.await_event("mcp_message_uninspected")["action"] == "block"


def test_sampling_cannot_be_slipped_in(tmp_path: Path) -> None:
    with scene(tmp_path, "sneaky-sampling", sampling={"policy": "block"}) as (here, it):
        it.send({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "ls"}})
        assert json.loads(it.line())["id"] == 5
        hostile = here.await_event("mcp_message_uninspected")
        assert (hostile["action"], hostile["cause"]) == ("block", "hostile")


def test_an_injection_in_a_result_is_stopped_where_that_is_wanted(tmp_path: Path) -> None:
    inspection = {"enabled": True, "on_detection": "block"}
    with scene(tmp_path, "injection", output_inspection=inspection) as (here, it):
        assert blocked(it.call(2), "Result of tool 'ls' blocked by policy")
        # By a standing verdict on the call.
        assert blocked(it.call(3), "Result of tool 'ls' blocked by policy")
        event = here.await_event("mcp_tool_result_inspected")
        assert (event["action"], event["tool_name"], event["jsonrpc_id"]) == ("block", "ls", 2)
        assert "ignore-instructions" in {d["pattern"] for d in event["detections"]}


def test_nothing_passes_by_a_line_that_no_judge_was_made_for(tmp_path: Path) -> None:
    """The shim would go on without a daemon that fails on a line, or hangs up on it."""
    inspection = {"enabled": True, "on_detection": "block"}
    denied = [{"tool": "rm"}]
    with scene(tmp_path, "odd-method", output_inspection=inspection, denied_tools=denied) as (here, it):
        assert blocked(it.call(5), "message refused")
        told = here.await_event("mcp_message_uninspected")
        assert (told["action"], told["max_severity"]) == ("block", "critical")
        assert blocked(it.call(6, "rm"), "denied_tools[0]")
        assert blocked(
            it.ask("resources/read", 7, uri="file:///" + "a" * (2 << 20)), "Result of resources/read"
        )
        event = here.await_event("mcp_tool_result_inspected")
        assert (event["action"], event["method"]) == ("block", "resources/read")
        assert it.got() == ["initialize", "tools/call", "resources/read"]


@pytest.mark.parametrize("closed", [False, True])
def test_a_result_past_the_bound_passes_whole_or_becomes_an_error(tmp_path: Path, closed: bool) -> None:
    with scene(tmp_path, "long", fail_closed=closed) as (here, it):
        it.list(1)
        answer = it.call(2)
        if closed:
            assert blocked(answer, "longer than 16 MiB")
        else:
            assert len(answer["result"]["content"][0]["text"]) == 17 << 20
        event = here.await_event("mcp_message_uninspected")
        assert (event["cause"], event["action"]) == ("too_long", "block" if closed else "allow")


def test_an_answer_in_single_bytes_is_an_answer(tmp_path: Path) -> None:
    with scene(tmp_path, "byte-by-byte") as (_, it):
        assert it.call()["result"] == {"content": []}


def test_a_server_that_dies_in_the_middle_of_a_line_is_dead_and_nothing_hangs(tmp_path: Path) -> None:
    with scene(tmp_path, "cut") as (_, it):
        it.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
        it.line()
        assert it.line() == b""
        assert it.process.wait(60) == 3


# Hostile clients: whoever holds the agent's end of the pipe.


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ls","name":"rm"}}',
        b'{"jsonrpc":"2.0","id":5,"method":"ping","m\\u0065thod":"tools/call","params":{"name":"rm"}}',
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"ls","NAME":"rm"}}',
        b'{"jsonrpc":"2.0","id":5,"method":"x","params":{"a":\r{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"rm"}}\r}}',
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"rm","arguments":{"x":"\xff"}}}',
        b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"rm","arguments":'
        + b"[" * 200
        + b"]" * 200
        + b"}}",
    ],
)
def test_a_call_in_disguise_never_reaches_the_server(tmp_path: Path, data: bytes) -> None:
    with scene(tmp_path, "honest", denied_tools=[{"server": "s", "tool": "rm"}]) as (here, it):
        it.list(1)
        assert "result" in it.call(2)  # a verdict stands by now
        it.send(data)
        assert json.loads(it.line())["error"]["code"] in {-32600, -31090}
        assert it.got() == ["initialize", "tools/list", "tools/call"]
        here.await_event("mcp_message_uninspected", lambda e: e["action"] == "block")


def test_ids_keep_their_types(tmp_path: Path) -> None:
    with scene(tmp_path, "honest", denied_tools=[{"server": "s", "tool": "rm"}]) as (here, it):
        for id_ in (7, "7"):
            it.send({"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": "rm"}})
            answer = json.loads(it.line())
            assert answer["id"] == id_ and type(answer["id"]) is type(id_)
        here.await_event("mcp_tool_called", lambda e: e["jsonrpc_id"] == "7")
        assert [e["jsonrpc_id"] for e in here.events("mcp_tool_called")] == [7, "7"]


def test_of_a_batch_the_server_gets_what_is_left(tmp_path: Path) -> None:
    with scene(tmp_path, "honest", denied_tools=[{"server": "s", "tool": "rm"}]) as (here, it):
        call = {"jsonrpc": "2.0", "method": "tools/call"}
        it.send([{**call, "id": 1, "params": {"name": "rm"}}, {**call, "id": 2, "params": {"name": "rm"}}])
        answers = json.loads(it.line())
        assert [a["id"] for a in answers] == [1, 2]
        assert it.got() == ["initialize"]
        here.await_event("mcp_tool_called", lambda e: e["jsonrpc_id"] == 2)
        assert [e["action"] for e in here.events("mcp_tool_called")] == ["block", "block"]


def test_audit_mode_changes_nothing_and_tells_all(tmp_path: Path) -> None:
    with scene(tmp_path, "honest", enforce_policy=False, denied_tools=[{"server": "s", "tool": "rm"}]) as (
        here,
        it,
    ):
        assert "result" in it.call(1, "rm")
        event = here.await_event("mcp_tool_called")
        assert (event["action"], event["would"]) == ("allow", "block")
        it.send(b'{"jsonrpc":"2.0","id":5,"method":"ping","method":"ping"}')
        assert json.loads(it.line())["id"] == 5
        event = here.await_event("mcp_message_uninspected")
        assert (event["action"], event["would"]) == ("allow", "block")
