"""Nobody can tell the shim from the server behind it: bytes, exit status, signals, stderr; and without a daemon it fails as told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from shim_process import PING, line, run, started


def test_bytes_pass_as_they_are() -> None:
    data = (
        PING
        + b"\r\n\n  "
        + PING.replace(b"2", b" 2.50e1")
        + b'\n{"x":"\xc3\xa9"}\nnoise\nend without newline'
    )
    assert run("cat", feed=data).stdout == data


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
        assert process.wait(60) == 5


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
    with started(
        sys.executable, "-c", script, patience="child.GRACE = 60", start_new_session=True
    ) as process:
        assert line(process) == b"ready\n"
        os.killpg(process.pid, signal.SIGTERM)
        assert process.wait(60) == 9


def test_the_servers_input_ends_when_ours_does() -> None:
    with started("sh", "-c", "cat; echo done; exit 4") as process:
        assert process.stdin is not None
        process.stdin.write(PING + b"\n")
        process.stdin.flush()
        assert line(process) == PING + b"\n"
        process.stdin.close()
        assert line(process) == b"done\n"
        assert process.wait(60) == 4


def test_the_sessions_token_is_not_the_servers_to_know() -> None:
    env = os.environ | {"AGENTSH_NET_SESSION": "secret"}
    assert run("sh", "-c", "echo x${AGENTSH_NET_SESSION}x", env=env).stdout == b"xx\n"


def test_it_loads_next_to_nothing() -> None:
    code = (
        "import sys; sys.argv = ['agentsh-net', 'shim', '--server', 's', '--', 'true']\n"
        "from agentsh_net.__main__ import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'asyncio', 'click', 'dataclasses', 'orjson', 'rich', 'subprocess', 'typing', 'uvloop', 'pathlib', 'agentsh_net.core.mcp.jsonrpc'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"  # the output has ended with the server's
    )
    done = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"], capture_output=True, text=True)  # fmt: skip
    assert done.stderr.splitlines()[-1:] == ["[]"]
