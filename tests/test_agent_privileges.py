"""Root's agent is somebody else, without capabilities or a way back; an internet socket of its starter's is closed."""

from __future__ import annotations

import json
import os
import pwd
import socket
import subprocess
import sys

import pytest

from agentsh_net import agent_privileges
from agentsh_net.core.errors import ConfigError

ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give something up")
NOBODY = pwd.getpwnam("nobody")


def test_root_names_somebody_or_comes_by_sudo() -> None:
    assert agent_privileges.account("nobody", {}, 0).uid == NOBODY.pw_uid
    assert agent_privileges.account(str(NOBODY.pw_uid), {}, 0).name == "nobody"
    assert agent_privileges.account("", {"SUDO_UID": str(NOBODY.pw_uid)}, 0).uid == NOBODY.pw_uid
    assert agent_privileges.account("root", {}, 0).uid == 0


@pytest.mark.parametrize("environ", [{}, {"SUDO_UID": "0"}])
def test_root_that_names_nobody_is_meant_itself(environ: dict[str, str]) -> None:
    assert agent_privileges.account("", environ, 0).uid == 0


def test_nobody_else_becomes_another() -> None:
    assert agent_privileges.account("", {}, NOBODY.pw_uid) is None
    assert agent_privileges.account("nobody", {}, NOBODY.pw_uid) is None
    with pytest.raises(ConfigError, match="root to start it"):
        agent_privileges.account("root", {}, NOBODY.pw_uid)


def test_an_unknown_user_is_a_mistake() -> None:
    with pytest.raises(ConfigError, match="a user of this machine"):
        agent_privileges.account("no such user", {}, 0)


def test_the_proxys_own_user_is_no_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = pwd.struct_passwd(("agentsh-net", "x", 990, 990, "", "/", "/usr/sbin/nologin"))
    monkeypatch.setattr(pwd, "getpwnam", lambda _: ours)
    with pytest.raises(ConfigError, match="the proxy's own"):
        agent_privileges.account("agentsh-net", {}, 0)


CONFINED = """
import json, os
from agentsh_net import agent_privileges
agent_privileges.give_up(agent_privileges.account("nobody", {}, 0))
try:
    os.setuid(0); back = "root again"
except PermissionError:
    back = "refused"
status = dict(l.split(":\\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\\t" in l)
print(json.dumps([back, os.getresuid(), os.getgroups(), [int(status[n], 16) for n in ("CapEff", "CapPrm", "CapBnd", "CapAmb")], status["NoNewPrivs"]]))
"""


@ROOT
def test_what_was_given_up_does_not_come_back() -> None:
    done = subprocess.run([sys.executable, "-c", CONFINED], capture_output=True, text=True, check=True)
    uid, gid = NOBODY.pw_uid, NOBODY.pw_gid
    assert json.loads(done.stdout) == ["refused", [uid] * 3, [gid], [0, 0, 0, 0], "1"]


def test_an_inherited_internet_socket_is_closed_and_nothing_else_is() -> None:
    with socket.socket() as internet, socket.socketpair()[0] as local, socket.socket() as kept:
        internet.set_inheritable(True)
        local.set_inheritable(True)
        number = internet.fileno()
        assert number in agent_privileges.close_internet_sockets()
        assert local.fileno() == os.dup2(local.fileno(), local.fileno())
        assert kept.fileno() >= 0
        os.fstat(kept.fileno())  # goes by itself at exec
        internet.detach()
