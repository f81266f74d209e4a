"""A confined process has given up root, capabilities, new privileges and other people's files, or does not run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from agentsh_proxy import landlock

SCRIPT = """
import json, os, resource, ssl, socket, sys
from pathlib import Path
from agentsh_proxy.confinement import confine
adjusted = open("/proc/self/oom_score_adj")
abi = confine(int(sys.argv[1]), int(sys.argv[1]), supervisor=int(sys.argv[2]))
status = dict(line.split(":", 1) for line in open("/proc/self/status")) if not abi else {}
oom = int(adjusted.read())
def attempt(action):
    try:
        action()
    except OSError as error:
        return error.errno
    return 0
print(json.dumps({
    "abi": abi, "ids": os.getresuid() + os.getresgid(), "groups": os.getgroups(), "core": resource.getrlimit(resource.RLIMIT_CORE),
    "become root": attempt(lambda: os.setuid(0)), "secret": attempt(lambda: open(sys.argv[3])), "write": attempt(lambda: open("/tmp/x-agentsh", "w")),
    "dns": attempt(lambda: socket.getaddrinfo("localhost", 80)), "trust": ssl.create_default_context().cert_store_stats()["x509_ca"] > 0,
    "resolv": attempt(lambda: open("/etc/resolv.conf")), "oom": oom,
}))
"""


def confined(*arguments: object, path: Path | None = None) -> subprocess.CompletedProcess:
    places = [*([str(path)] if path else []), *(p for p in sys.path if p)]
    return subprocess.run(
        [sys.executable, "-c", SCRIPT, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to give up")
def test_root_becomes_nobody_and_can_still_speak_tls(tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("x")
    secret.chmod(0o600)
    run = confined(65534, os.getpid(), secret)
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert told["ids"] == [65534] * 6
    assert told["groups"] == []
    assert told["core"] == [0, 0]
    assert told["oom"] == 500  # the kernel takes it before the supervisor
    assert told["become root"] == 1
    assert told["secret"] == 13
    assert (told["dns"], told["trust"], told["resolv"]) == (0, True, 0)
    if landlock.abi():
        assert told["write"] == 13


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has a home that others cannot enter")
def test_an_installation_in_a_home_that_nobody_else_may_enter_serves(tmp_path):
    home = tmp_path / "home"
    (home / "checkout").mkdir(parents=True)
    home.chmod(0o700)
    run = confined(65534, os.getpid(), home, path=home / "checkout")
    assert run.returncode == 0, run.stderr
    told = json.loads(run.stdout)
    assert (told["ids"], told["secret"], told["trust"]) == ([65534] * 6, 13, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root could stay root")
def test_a_worker_never_stays_root():
    run = confined(0, os.getpid(), "/none")
    assert run.returncode != 0
    assert "must not run as root" in run.stderr


def test_a_worker_whose_supervisor_is_gone_does_not_run():
    run = confined(65534, 1 if os.getpid() != 1 else 2, "/none")
    assert run.returncode != 0
    assert "the supervisor is gone" in run.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has privileges to give up")
def test_without_the_right_to_change_users_it_keeps_its_own_and_no_capability():
    script = (
        "from agentsh_proxy.confinement import confine\n"
        f"confine(65534, 65534, supervisor={os.getpid()}, keep_user=True)\n"
        "import subprocess\n"
        "child = subprocess.Popen(['cat'])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    with subprocess.Popen(
        ["setpriv", "--bounding-set=-all,+net_admin", "--inh-caps=-all,+net_admin", "--ambient-caps=+net_admin", sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as worker:  # fmt: skip
        assert worker.stdout is not None
        child = int(worker.stdout.readline())
        held = [capabilities(worker.pid), capabilities(child)]
        worker.communicate()
    assert held == [([0, 0, 0, 0], 1)] * 2  # its own, and those of a program that it runs


def capabilities(pid: int) -> tuple[list[int], int]:
    """Return the permitted, effective, inheritable and ambient capabilities of a process, and its no_new_privs."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    sets = [int(status[f"Cap{which}"], 16) for which in ("Prm", "Eff", "Inh", "Amb")]
    return sets, int(status["NoNewPrivs"])
