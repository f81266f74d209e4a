"""The shim's loop: nobody waits for anybody, long lines and dead peers end well, and without a daemon it fails as told."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest
from agentsh_proxy.shim import relay
from agentsh_proxy.shim.relay import Relay
from shim_process import CALL, LISTED, PING, flood, line, run, started


@pytest.mark.parametrize("size", [100_000, 5 << 20])
def test_long_lines_pass_whole(size: int) -> None:
    data = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * size + b'"}\n'
    assert run("cat", feed=data + PING + b"\n").stdout == data + PING + b"\n"


def test_a_line_past_the_bound_streams_through() -> None:
    data = b'{"result":"' + b"x" * (48 << 20) + b'","jsonrpc":"2.0","id":7}\n' + PING + b"\n"
    assert run("cat", feed=data).stdout == data


def test_a_line_past_the_bound_is_refused_where_nothing_passes_unread() -> None:
    data = b'{"method":"x","params":"' + b"x" * (17 << 20) + b'","jsonrpc":"2.0","id":7}\n' + PING + b"\n"
    lines = run("cat", feed=data, options=("--fail-closed",)).stdout.splitlines()
    assert PING in lines
    (error,) = [json.loads(line) for line in lines if line != PING]
    assert error["id"] == 7 and "16 MiB" in error["error"]["message"]


def test_an_answer_past_the_bound_that_is_refused_is_told_to_the_server_that_waits_for_it() -> None:
    data = b'{"jsonrpc":"2.0","id":7,"result":{"x":"' + b"x" * (17 << 20) + b'"}}\n' + PING + b"\n"
    lines = run("cat", feed=data, options=("--fail-closed",)).stdout.splitlines()  # it says what it hears
    assert [json.loads(line).get("id") for line in lines] == [7, json.loads(PING)["id"]]
    assert "16 MiB" in json.loads(lines[0])["error"]["message"]


def test_what_a_dead_server_said_last_is_delivered() -> None:
    done = run("sh", "-c", f"head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo '{PING.decode()}'")
    assert len(done.stdout) == 3_000_001 + len(PING) + 1


def test_a_client_that_is_gone_is_noticed_by_the_server() -> None:
    with started("sh", "-c", "echo ready; while echo more; do :; done; exit 7") as process:
        assert line(process) == b"ready\n"
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(60) in {7, -signal.SIGPIPE}


def test_a_server_that_closed_its_input_is_noticed_by_the_client() -> None:
    with started("sh", "-c", "exec <&-; echo ready; sleep 60") as process:
        assert line(process) == b"ready\n"
        assert process.stdin is not None
        with pytest.raises(BrokenPipeError):
            flood(process.stdin.fileno())


def test_a_server_that_closed_its_output_and_lives_on_is_heard_of_no_more() -> None:
    with started("sh", "-c", "echo bye; exec >&-; read line; exit 5") as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.read() == b"bye\n"
        assert process.poll() is None
        process.stdin.write(PING + b"\n")
        process.stdin.close()
        assert process.wait(10) == 5


def test_a_server_that_leaves_a_process_behind_is_dead_all_the_same() -> None:
    """The process that it left holds its output open: the shim waits for silence, not for that."""
    with started("sh", "-c", "sleep 50 & echo bye; exit 3") as process:
        assert line(process) == b"bye\n"
        assert process.wait(60) == 3


def test_neither_side_waits_for_the_other() -> None:
    """A server that writes more than pipes hold before it reads, and a client that does the same."""
    big = 4 << 20
    code = f"import sys; sys.stdout.write('x' * {big} + '\\n'); sys.stdout.flush(); print(len(sys.stdin.readline()), flush=True)"
    with started(sys.executable, "-c", code) as process:
        assert process.stdin is not None and process.stdout is not None
        writer = threading.Thread(
            target=lambda: (process.stdin.write(b"y" * big + b"\n"), process.stdin.flush())
        )  # type: ignore[union-attr]
        writer.start()
        assert len(process.stdout.readline()) == big + 1
        writer.join(60)
        assert int(process.stdout.readline()) == big + 1


def test_by_default_calls_pass_and_it_is_said_once_and_loudly() -> None:
    done = run("cat", feed=(CALL + b"\n") * 3)
    assert done.stdout == (CALL + b"\n") * 3
    assert done.stderr.count(b"UNJUDGED") == 1


def test_fail_closed_answers_calls_with_errors_and_passes_the_rest() -> None:
    done = run("cat", feed=PING + b"\n" + CALL + b"\n" + LISTED + b"\n", options=("--fail-closed",))
    lines = done.stdout.splitlines()
    assert PING in lines and LISTED in lines
    (error,) = [json.loads(text) for text in lines if b"error" in text]
    assert error["id"] == 1 and "fail_closed" in error["error"]["message"]
    assert b"blocked (fail_closed)" in done.stderr


def test_fail_closed_answers_a_servers_sampling_to_the_server() -> None:
    ask = '{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{}}'
    heard = '{"jsonrpc":"2.0","method":"notifications/message","params":{"answer":%s}}\\n'
    with started(
        "sh", "-c", f"echo '{ask}'; read -r answer; printf '{heard}' \"$answer\"", options=("--fail-closed",)
    ) as process:
        answer = json.loads(line(process))["params"]["answer"]
    assert answer["id"] == "s" and "fail_closed" in answer["error"]["message"]


def test_a_server_that_outlives_its_client_in_silence_is_asked_to_end_and_then_killed() -> None:
    stubborn = ("sh", "-c", "trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done")
    with started(*stubborn, patience="relay.PATIENCE = 0.2; relay.KILL_AFTER = 2") as process:
        assert line(process) == b"ready\n"
        assert process.stdin is not None
        process.stdin.close()
        assert line(process) == b"asked\n"
        assert process.wait(60) == -signal.SIGKILL


def test_a_denied_shim_whose_server_is_dead_sleeps_until_somebody_speaks() -> None:
    child: Any = SimpleNamespace(status=0, stdin=None, stdout=None, started=None, deadline=None)
    daemon: Any = SimpleNamespace(denied=True, results=False, deadline=None, denial="denied")
    loop = Relay(child, daemon, -1)
    assert loop._timeout() == 0  # a dead server's silence is over long since
    loop._turn()
    assert loop._timeout() is None


def test_what_a_server_says_while_it_is_read_goes_to_the_client_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said, says = os.pipe()
    child: Any = SimpleNamespace(status=None, stdin=None, stdout=said, started=None)
    daemon: Any = SimpleNamespace(denied=False, results=False)
    loop = Relay(child, daemon, -1)
    first, *others = (PING.replace(b"2,", b"%d," % n) + b"\n" for n in range(5))
    further = list(others)

    def reading(fd: int, size: int) -> bytes:
        data = read(fd, size)
        if further:
            os.write(says, further.pop(0))
        elif data:
            os.close(says)
        return data

    read = os.read
    monkeypatch.setattr(relay.os, "read", reading)
    os.write(says, first)
    passed = []
    for _ in range(2):
        loop._read_server(said)
        passed.append(bytes(loop._down.out))
        loop._down.out.clear()
    assert passed == [first + b"".join(others[:2]), b"".join(others[2:])]
    assert loop._child_out is None  # its end came third
