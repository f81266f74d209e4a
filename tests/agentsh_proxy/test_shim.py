"""Nobody can tell the shim from the server behind it: bytes, exit status, signals, stderr; and without a daemon it fails as told."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CALL = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}'
PING = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
LISTED = b'{"jsonrpc":"2.0","id":3,"method":"tools/list"}'


def command(
    *server: str, options: tuple[str, ...] = (), socket: Path = Path("/nowhere/control.sock")
) -> list[str]:
    return [sys.executable, "-m", "agentsh_net", "--socket", str(socket), "shim", "--server", "s", *options, "--", *server]  # fmt: skip


def run(
    *server: str, feed: bytes = b"", options: tuple[str, ...] = (), **more: Any
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(*server, options=options), input=feed, capture_output=True, timeout=30, **more
    )


def test_bytes_pass_as_they_are() -> None:
    data = (
        PING
        + b"\r\n\n  "
        + PING.replace(b"2", b" 2.50e1")
        + b'\n{"x":"\xc3\xa9"}\nnoise\nend without newline'
    )
    assert run("cat", feed=data).stdout == data


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


def test_stderr_and_status_are_the_servers() -> None:
    done = run("sh", "-c", "echo oops >&2; exit 42")
    assert done.returncode == 42
    assert b"oops\n" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGABRT])
def test_it_dies_as_the_server_dies(number: int, tmp_path: Path) -> None:
    assert run("sh", "-c", f"kill -{number} $$", cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}).returncode == -number  # fmt: skip


@pytest.mark.parametrize(("program", "status"), [("/nonexistent", 127), ("/etc/passwd", 126)])
def test_a_server_that_cannot_be_started_is_told_of_as_shells_do(program: str, status: int) -> None:
    done = run(program)
    assert done.returncode == status
    assert f"cannot start '{program}'".encode() in done.stderr


@contextlib.contextmanager
def started(*server: str, options: tuple[str, ...] = (), **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(command(*server, options=options), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[bytes]) -> bytes:
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], 20)
    assert ready, "nothing was written"
    return process.stdout.readline()


TRAP = (
    "trap 'echo caught; exit 5' TERM INT HUP; trap 'echo usr' USR1; echo ready; while :; do sleep 0.05; done"
)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_reaches_the_server_and_its_answer_is_ours(number: int) -> None:
    with started("sh", "-c", TRAP) as process:
        assert line(process) == b"ready\n"
        process.send_signal(signal.SIGUSR1)
        assert line(process) == b"usr\n"
        process.send_signal(number)
        assert line(process) == b"caught\n"
        assert process.wait(20) == 5


def test_a_signal_to_the_whole_group_reaches_the_server_once() -> None:
    script = (
        "import signal, sys, time\n"
        "def caught(*_):\n"
        "    signal.signal(signal.SIGTERM, lambda *_: sys.exit(8))\n"
        "    sys.exit(9)\n"
        "signal.signal(signal.SIGTERM, caught)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)"
    )
    with started(sys.executable, "-c", script, start_new_session=True) as process:
        assert line(process) == b"ready\n"
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(20) == 9


def test_the_servers_input_ends_when_ours_does() -> None:
    with started("sh", "-c", "cat; echo done; exit 4") as process:
        assert process.stdin is not None
        process.stdin.write(PING + b"\n")
        process.stdin.flush()
        assert line(process) == PING + b"\n"
        process.stdin.close()
        assert line(process) == b"done\n"
        assert process.wait(20) == 4


def test_what_a_dead_server_said_last_is_delivered() -> None:
    done = run("sh", "-c", f"head -c 3000000 /dev/zero | tr '\\0' 'x'; echo; echo '{PING.decode()}'")
    assert len(done.stdout) == 3_000_001 + len(PING) + 1


def test_a_client_that_is_gone_is_noticed_by_the_server() -> None:
    with started("sh", "-c", "echo ready; while echo more; do :; done; exit 7") as process:
        assert line(process) == b"ready\n"
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(20) in {7, -signal.SIGPIPE}


def test_a_server_that_closed_its_input_is_noticed_by_the_client() -> None:
    with started("sh", "-c", "exec <&-; echo ready; sleep 60") as process:
        assert line(process) == b"ready\n"
        assert process.stdin is not None
        with pytest.raises(BrokenPipeError):
            flood(process.stdin.fileno())


def flood(fd: int) -> None:
    while True:
        os.write(fd, PING + b"\n")


def test_a_server_that_leaves_a_process_behind_is_dead_all_the_same() -> None:
    """The process that it left holds its output open: the shim waits for silence, not for that."""
    with started("sh", "-c", "sleep 50 & echo bye; exit 3") as process:
        assert line(process) == b"bye\n"
        assert process.wait(10) == 3


def test_the_sessions_token_is_not_the_servers_to_know() -> None:
    env = os.environ | {"AGENTSH_NET_SESSION": "secret"}
    assert run("sh", "-c", "echo x${AGENTSH_NET_SESSION}x", env=env).stdout == b"xx\n"


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
        writer.join(20)
        assert int(process.stdout.readline()) == big + 1


# Without a daemon.


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


def test_it_loads_next_to_nothing() -> None:
    code = (
        "import sys; sys.argv = ['agentsh-net', 'shim', '--server', 's', '--', 'true']\n"
        "from agentsh_net.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'asyncio', 'click', 'dataclasses', 'orjson', 'rich', 'subprocess', 'typing', 'uvloop', 'pathlib', 'agentsh_net.core.jsonrpc'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"], capture_output=True, text=True)  # fmt: skip
    assert done.stdout.splitlines()[-1:] == ["[]"], done.stderr
