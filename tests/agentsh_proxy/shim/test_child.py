"""A server behind the shim is started, signalled and mourned as it would be without it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from agentsh_proxy.shim import child as module
from agentsh_proxy.shim.child import GRACE, Child, spawn


def wait(child: Child) -> int:
    while not child.reap():
        time.sleep(0.001)  # the kernel offers no more than asking
    assert child.status is not None
    return child.status


def start(*command: str) -> Child:
    child = spawn(command, dict(os.environ))
    select.select([child.started], [], [], 10)
    assert child.fault() == 0
    return child


def test_input_and_output_are_pipes_and_the_status_is_kept() -> None:
    child = start("sh", "-c", "read line; echo got $line; exit 3")
    os.write(child.stdin, b"this\n")
    assert os.read(child.stdout, 100) == b"got this\n"
    assert os.waitstatus_to_exitcode(wait(child)) == 3
    assert child.reap()


@pytest.mark.parametrize(("command", "fault"), [("/nonexistent", 2), ("/etc/passwd", 13), ("/", 13)])
def test_what_cannot_be_started_says_why(command: str, fault: int) -> None:
    child = spawn([command], {})
    select.select([child.started], [], [], 10)
    assert child.fault() == fault
    wait(child)


def test_a_command_is_looked_up_in_the_path_it_is_given() -> None:
    child = spawn(["true"], {"PATH": "/nowhere"})
    select.select([child.started], [], [], 10)
    assert child.fault() == 2
    wait(child)


def test_the_server_gets_what_we_were_given_and_none_of_our_own_pipes() -> None:
    code = "import os; print(sorted(fd for fd in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + fd)))"
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    child = start(sys.executable, "-S", "-c", code)
    wait(child)
    direct = subprocess.run([sys.executable, "-S", "-c", code], close_fds=False, stdout=subprocess.PIPE)
    assert str(writer) in direct.stdout.decode()
    assert os.read(child.stdout, 1000) == direct.stdout
    os.close(reader)
    os.close(writer)


def test_a_broken_pipe_kills_the_server_as_it_would_without_us() -> None:
    child = start(
        sys.executable, "-c", "import signal; print(signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN)"
    )
    wait(child)
    probe = start("sh", "-c", "grep SigIgn /proc/self/status")
    wait(probe)
    ignored = int(os.read(probe.stdout, 1000).split()[1], 16)
    assert not ignored & (1 << (signal.SIGPIPE - 1))
    assert not ignored & (1 << (signal.SIGXFSZ - 1))


def test_a_signal_that_may_have_reached_the_whole_group_is_passed_on_after_a_grace() -> None:
    child = start("sleep", "60")
    child.forward(signal.SIGTERM, 100.0)
    assert child.deadline == 100.0 + GRACE
    child.expire(100.0)
    assert not child.reap()
    child.expire(100.0 + GRACE)
    assert os.WTERMSIG(wait(child)) == signal.SIGTERM


def test_a_server_that_died_of_it_meanwhile_gets_no_second_one() -> None:
    child = start("true")
    child.forward(signal.SIGINT, 100.0)
    wait(child)
    assert child.deadline is None
    child.kill(signal.SIGKILL)


def test_other_signals_are_passed_on_at_once() -> None:
    child = start("sleep", "60")
    child.forward(signal.SIGUSR1, 100.0)
    assert os.WTERMSIG(wait(child)) == signal.SIGUSR1


LEAVE = "import sys; from agentsh_proxy.shim.child import leave_as; sys.exit(leave_as(int(sys.argv[1])))"


@pytest.mark.parametrize("status", [0, 1 << 8, 255 << 8])
def test_it_exits_as_the_server_exited(status: int) -> None:
    assert subprocess.run([sys.executable, "-c", LEAVE, str(status)]).returncode == status >> 8


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGINT, signal.SIGPIPE]
)
def test_it_dies_of_the_signal_that_the_server_died_of(number: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LEAVE, str(number | 0x80)], cwd=tmp_path, stderr=subprocess.DEVNULL
    )
    assert done.returncode == -number
    assert not list(tmp_path.iterdir())


def test_a_server_dies_with_a_shim_that_is_killed() -> None:
    code = (
        "import os, sys, time; from agentsh_proxy.shim.child import spawn\n"
        "child = spawn(['sleep', '60'], dict(os.environ)); os.read(child.started, 1); print(child.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        server = int(process.stdout.readline())
        watched = os.pidfd_open(server)
        process.kill()
        ready, _, _ = select.select([watched], [], [], 10)
        os.close(watched)
    assert ready


def test_the_module_names_the_codes_of_the_shell() -> None:
    assert (module.NOT_FOUND, module.NOT_EXECUTABLE) == (127, 126)
