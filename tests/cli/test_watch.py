"""The screen never exceeds the terminal, shows nothing raw, and says loudly what is not in force; without a terminal it is `tail`."""

import os
import pty
import re
import signal
import sys

import pytest
from rich.cells import cell_len

from agentsh_net.cli.watch import Board, screen

ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
STATUS = {
    "version": "1", "policy": {"mode": "enforce", "generation": 3}, "proxy": {"listen": "http://127.0.0.1:1"}, "shims": [{}],
    "layers": [
        {"layer": "ebpf", "wanted": True, "in_force": False, "reason": "no BTF"},
        {"layer": "nftables", "wanted": True, "in_force": True},
    ],
}  # fmt: skip
CALL = {"id": "1", "type": "mcp_tool_called", "timestamp": "2026-01-01T10:00:00.0Z", "action": "block", "server_id": "fs", "tool_name": "rm\x1b[2J", "reason": "denied", "input": {"path": "/\u202e"}}  # fmt: skip
CONNECTION = {"id": "2", "type": "mcp_network_connection", "timestamp": "2026-01-01T10:00:01.0Z", "action": "allow", "server_id": "web", "comm": "node", "pid": 7, "remote_addr": "10.0.0.1:443", "layer": "ebpf"}  # fmt: skip


def board(*events):
    made = Board(status=STATUS)
    for event in events:
        made.take(event)
    return made


@pytest.mark.parametrize(("width", "height"), [(20, 5), (80, 24), (300, 100)])
def test_the_screen_fits_its_terminal(width, height):
    lines = screen(board(*[CALL] * 300, *[CONNECTION] * 300), width, height)
    assert len(lines) <= height
    assert all(len(ESCAPES.sub("", line)) < width for line in lines)


def test_wide_letters_fit_too():
    lines = screen(board({**CALL, "tool_name": "日本" * 100}), 60, 24)
    assert max(cell_len(ESCAPES.sub("", line)) for line in lines) == 59


def test_no_colour_is_drawn_for_who_wants_none(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert {code for line in screen(board(CALL), 80, 24) for code in ESCAPES.findall(line)} == {
        "\x1b[1m",
        "\x1b[0m",
    }


def test_everything_has_its_place_and_its_colour_and_nothing_is_raw():
    lines = screen(board(CALL, CONNECTION, {"id": "3", "type": "policy_reloaded", "generation": 4}), 160, 40)
    text = "\n".join(lines)
    assert "\x1b[2J" not in text and "\u202e" not in text
    assert "\x1b[31m  ebpf  NOT IN FORCE: no BTF\x1b[0m" in lines
    assert "  nftables  in force" in lines
    assert "1 allow, 1 block" in lines[0]
    calls, connections, others = (next(i for i, l in enumerate(lines) if title in l) for title in ("CALLS", "CONNECTIONS", "EVENTS"))  # noqa: E741  # fmt: skip
    assert "\x1b[31m  10:00:00  block        fs  rm<U+001B>[2J: denied" in lines[calls + 1]
    assert "node[7] -> 10.0.0.1:443" in lines[connections + 1]
    assert "generation 4" in lines[others + 1]


def test_without_a_terminal_events_are_lines(run, daemon):
    fake = daemon(status=STATUS)
    fake.publish_when_followed(CONNECTION)
    result = run("watch", "--server", "web")
    assert result.stdout.startswith("2026-01-01 10:00:01  allow        mcp_network_connection  web  node[7]")
    assert "\x1b" not in result.stdout
    assert result.exit_code == 4


def watched(socket, end):
    """Run the real program under a pseudo-terminal, call `end` with its pid once it shows the layers; return what it showed and its exit."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "agentsh_net", "--socket", str(socket), "watch"])
    shown = b""
    ending = False
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # the other end is closed
            break
        if not data:
            break
        shown += data
        if b"NOT IN FORCE" in shown and not ending:
            ending = True
            end(pid)
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(status)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_it_leaves_the_terminal_as_it_was(daemon, socket, number):
    daemon(status=STATUS)
    shown, code = watched(socket, lambda pid: os.kill(pid, number))
    assert code == -number
    assert shown.endswith(b"\x1b[?25h\x1b[?1049l")


def test_on_a_terminal_the_screen_comes_and_goes(daemon, socket):
    """The real program under a pseudo-terminal, until the daemon ends."""
    fake = daemon(status=STATUS)
    shown, code = watched(socket, lambda _: fake.publish_when_followed(CALL))
    assert code == 4
    assert shown.startswith(b"\x1b[?1049h")
    assert b"\x1b[?25h\x1b[?1049l" in shown, "the terminal is as it was"
    assert b"error:" in shown.rpartition(b"\x1b[?1049l")[2]
