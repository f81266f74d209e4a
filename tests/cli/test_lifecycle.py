"""Reload says what is in force; down leaves nothing behind, and ends by force only what it was told to."""

import os
import signal
import subprocess
import sys
import time

import pytest

from agentsh_net.cli import lifecycle
from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError, KernelError, Problem
from agentsh_net.kernel import leftovers


@pytest.fixture(autouse=True)
def removed(monkeypatch):
    """The kernel of these tests: what `leftovers.down` would remove. The real one is never touched."""
    left = ["nftables table inet agentsh_net"]

    def down():
        taken = list(left)
        left.clear()
        return taken

    monkeypatch.setattr(leftovers, "down", down)
    monkeypatch.setattr(leftovers, "owners", list)
    return left


def test_a_reload_says_what_is_in_force_and_what_waits(run, daemon):
    daemon(reload={"changed": True, "generation": 4, "pending": ["proxy.port"]})
    assert run("reload").stdout == "in force: generation 4\nwaits for the next start: proxy.port\n"


def test_a_reload_of_the_same_file_says_so(run, daemon):
    daemon(reload={"changed": False, "generation": 4, "pending": []})
    assert run("reload").stdout == "in force already: generation 4\n"


def test_a_refused_reload_tells_every_problem(run, daemon):
    daemon(reload=ConfigError([Problem("proxy.port", "'x'", "a number"), Problem("a", "1", "2")]))
    result = run("reload")
    assert result.exit_code == 2
    assert result.stderr.splitlines()[:2] == [
        "error: proxy.port: found 'x'; expected a number",
        "error: a: found 1; expected 2",
    ]


def test_down_stops_a_daemon_and_waits_until_it_is_gone(run, daemon, removed):
    fake = daemon(stop=lambda args: fake.close_soon())
    result = run("down")
    assert (result.exit_code, result.stdout) == (0, f"stopped: agentsh-net, pid {os.getpid()}\n")
    assert removed  # a daemon that stops in order removes what it made


def test_down_with_force_also_removes_what_is_left(run, daemon, removed):
    fake = daemon(stop=lambda args: asked.append(args) or fake.close_soon())
    asked: list[dict[str, object]] = []
    assert "removed: nftables table inet agentsh_net\n" in run("down", "--force").stdout
    assert removed == []
    assert asked == [{"remove": True}]  # this process may end with the daemon


CRASH = (
    "import os, sys; from pathlib import Path; from agentsh_net.control.socket_file import listen\n"
    "listen(Path(sys.argv[1])); os._exit(9)"
)


def test_down_without_a_daemon_touches_nothing_and_names_force(run, removed):
    result = run("down")
    assert result.exit_code == 4
    assert "down --force" in result.stderr
    assert removed  # it is still there to be removed


def test_down_with_force_removes_what_a_crash_left(run, socket, removed):
    subprocess.run([sys.executable, "-c", CRASH, socket], check=False)
    assert run("down", "--force").stdout.splitlines() == [
        "removed: nftables table inet agentsh_net",
        f"removed: {socket}",
        f"removed: {socket}.lock",
    ]
    assert list(socket.parent.iterdir()) == []
    again = run("down", "--force")
    assert (again.exit_code, again.stdout) == (0, "no daemon runs, and nothing was left to remove\n")


def test_down_with_force_ends_whoever_the_tables_belong_to_when_no_socket_leads_there(run, monkeypatch):
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as holder:
        monkeypatch.setattr(leftovers, "owners", lambda: [holder.pid] if holder.poll() is None else [])
        said = run("down", "--force").stdout.splitlines()
        assert holder.wait(60) == -signal.SIGKILL
    assert said == [
        f"ended: pid {holder.pid}, a daemon that enforced here",
        "removed: nftables table inet agentsh_net",
    ]


def test_down_says_what_it_may_not_do(run, monkeypatch):
    def refuse():
        raise KernelError("the kernel does not answer", remedy="run as root")

    monkeypatch.setattr(leftovers, "down", refuse)
    result = run("down", "--force")
    assert result.exit_code == 3
    assert "fix: run as root" in result.stderr


HANG = (
    "import sys, time; from pathlib import Path; from agentsh_net.control.socket_file import listen\n"
    "made = listen(Path(sys.argv[1])); print('listening', flush=True); time.sleep(60)"
)


@pytest.fixture
def hanging(socket, monkeypatch):
    monkeypatch.setattr(lifecycle, "_DIE_WITHIN", 0.2)
    monkeypatch.setattr("agentsh_net.control.client.TIMEOUT", 0.2)
    with subprocess.Popen([sys.executable, "-c", HANG, socket], stdout=subprocess.PIPE) as child:
        child.stdout.readline()
        yield child
        child.kill()


def test_down_tells_of_a_daemon_that_does_not_answer(run, hanging):
    result = run("down")
    assert result.exit_code == 4
    assert "down --force" in result.stderr
    assert hanging.poll() is None


def test_down_with_force_ends_a_daemon_that_does_not_answer(run, hanging, socket):
    result = run("down", "--force")
    assert hanging.wait(60) == -signal.SIGKILL
    assert f"stopped: agentsh-net, pid {hanging.pid}" in result.stdout
    assert not socket.exists()


def test_down_ends_in_order_a_daemon_whose_socket_was_removed(run, hanging, socket):
    socket.unlink()
    assert f"a daemon runs (pid {hanging.pid}), but its socket {socket} was removed" in run("status").stderr
    result = run("down")
    assert (result.exit_code, result.stdout) == (0, f"stopped: agentsh-net, pid {hanging.pid}\n")
    assert hanging.wait(60) == -signal.SIGTERM


def test_down_tells_of_a_daemon_that_takes_too_long(run, daemon, monkeypatch):
    monkeypatch.setattr(lifecycle, "_STOP_WITHIN", 0.1)
    daemon(stop=None)
    before = time.monotonic()
    result = run("down")
    assert result.exit_code == 4
    assert "has not stopped" in result.stderr
    assert time.monotonic() - before < 5


def test_a_refused_stop_is_told(run, daemon):
    daemon(stop=ControlError("not you", kind="forbidden"))
    assert run("down").exit_code == 4


@pytest.mark.parametrize("pid", [0, 1, -1])
def test_a_number_that_is_no_daemon_is_never_killed(pid, monkeypatch):
    killed = []
    monkeypatch.setattr(lifecycle.os, "kill", lambda *args: killed.append(args))
    with pytest.raises(lifecycle.Failure):
        lifecycle._signal(pid, signal.SIGKILL)
    assert killed == []
