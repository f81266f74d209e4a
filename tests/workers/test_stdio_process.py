"""A stdio server behind the gateway is somebody else, without capabilities, and can gain no privilege; the supervisor keeps its own."""

from __future__ import annotations

import asyncio
import os
import pwd
import stat
from pathlib import Path

import pytest
from few_files import nothing_left_open

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Server, Transport
from agentsh_net.workers import stdio_process
from agentsh_net.workers.stdio_process import Account, Launcher, account, environment

ROOT = os.geteuid() == 0
NONE = "0000000000000000"


def server(*command: str, **env: str) -> Server:
    return Server("io", Transport.STDIO, command=command[0], args=command[1:], env=env)


def run(*command: str) -> tuple[int, str]:
    """Return the exit status of a server, and its output."""
    who = account("nobody" if ROOT else "")

    async def main() -> tuple[int, str]:
        launcher = Launcher()
        try:
            null, (out, theirs) = os.open(os.devnull, os.O_RDWR), os.pipe()
            with open(out, encoding="utf-8") as output:
                process = await launcher.launch(server(*command), who, (null, theirs, os.dup(null)))
                return await process.wait(), output.read()
        finally:
            launcher.close()

    with nothing_left_open():
        return asyncio.run(main())


def sets(status: str) -> dict[str, str]:
    lines = (line.partition(":\t") for line in status.splitlines())
    return {name: value for name, _, value in lines if name.startswith(("Cap", "NoNew"))}


def test_it_has_no_capability_and_can_gain_none() -> None:
    before = sets(Path("/proc/self/status").read_text())
    status, told = run("/bin/cat", "/proc/self/status")
    assert status == 0
    bound = {} if ROOT else {"CapBnd": before["CapBnd"]}  # who is not root cannot empty it: no_new_privs does
    names = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    assert sets(told) == dict.fromkeys(names, NONE) | bound | {"NoNewPrivs": "1"}
    assert sets(Path("/proc/self/status").read_text()) == before


@pytest.mark.skipif(not ROOT, reason="only root can make a set-user-id program of root's")
def test_a_set_user_id_program_makes_it_nobody_else(tmp_path: Path) -> None:
    program = Path("/var/tmp") / f"{tmp_path.name}-id"  # a place that nobody reaches, not mounted nosuid
    program.write_bytes(Path("/usr/bin/id").read_bytes())
    try:
        program.chmod(0o755 | stat.S_ISUID)
        assert run(str(program), "-u") == (0, f"{pwd.getpwnam('nobody').pw_uid}\n")
    finally:
        program.unlink()


def test_nothing_is_started_where_privileges_cannot_be_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*, change_user: bool) -> None:
        raise OSError(f"prctl: no ({change_user})")

    monkeypatch.setattr(stdio_process.privileges, "renounce", refused)
    with pytest.raises(ProtocolError, match="does not let us give up privileges"):
        run("/bin/true")


def test_a_server_that_cannot_be_started_is_told_with_its_user() -> None:
    user = "nobody" if ROOT else pwd.getpwuid(os.geteuid()).pw_name
    with pytest.raises(ProtocolError, match=rf"^/no/such: No such file or directory \(as user {user}: "):
        run("/no/such")


def test_the_signal_it_died_of_is_told() -> None:
    assert run("/bin/sh", "-c", "kill -9 $$") == (-9, "")


def test_a_user_that_is_not_there_or_is_root_is_refused() -> None:
    with pytest.raises(ProtocolError, match="no user nobody-here"):
        account("nobody-here")
    with pytest.raises(ProtocolError, match=r"never runs as root|only a daemon that runs as root"):
        account("root")


def test_only_root_runs_a_server_as_somebody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    me = pwd.getpwnam("daemon")
    monkeypatch.setattr(os, "geteuid", lambda: me.pw_uid)
    assert account("") == account("daemon")
    assert (account("").uid, account("").change) == (me.pw_uid, False)
    with pytest.raises(ProtocolError, match="only a daemon that runs as root can start it as user nobody"):
        account("nobody")


def test_who_is_in_no_file_is_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_001)
    assert account("") == Account("4000000001", 4_000_000_001, os.getegid(), "/", change=False)


def test_the_proxys_own_user_is_no_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = pwd.struct_passwd(("agentsh-net", "x", 990, 990, "", "/", "/usr/sbin/nologin"))
    monkeypatch.setattr(pwd, "getpwnam", lambda _: ours)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(ProtocolError, match="the proxy's own"):
        account("agentsh-net")


def test_what_is_declared_wins_over_what_is_ours() -> None:
    who = account("nobody") if ROOT else account("")
    env = environment(server("x", PATH="/own"), who, {"PATH": "/ours", "LANG": "C", "TOKEN": "x"})
    assert env["PATH"] == "/own" and env["LANG"] == "C" and "TOKEN" not in env
    assert env["USER"] == who.name
