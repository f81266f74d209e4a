"""A process that reads the network gets the sockets it was passed, and of the environment what it needs and no secret."""

from __future__ import annotations

import asyncio
import grp
import os
import pwd
import socket
import sys
from pathlib import Path

import pytest

from agentsh_net.workers import unprivileged
from agentsh_net.workers.unprivileged import Identity, identity


@pytest.fixture
def process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A stand-in for the interpreter that writes down how it was started."""
    told = tmp_path / "told"
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\n{{ echo "$@"; env; ls -l /proc/$$/fd; }} > {told}\n')
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))
    return told


def test_it_has_its_sockets_and_none_of_the_supervisors_secrets(
    process: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_TOKEN", "sesame")
    monkeypatch.setenv("LANG", "C.UTF-8")

    async def script(passed: socket.socket) -> int:
        return await (
            await unprivileged.start("page", "--listen", "::1", passing={"--link-fd": passed})
        ).wait()

    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert asyncio.run(script(theirs)) == 0
        told = process.read_text()
        fd, who = theirs.fileno(), identity()
        assert told.startswith(
            f"-m agentsh_proxy page --listen ::1 --link-fd {fd} --uid {who.uid} --gid {who.gid}"
        )
        assert f"--supervisor {os.getpid()}\n" in told
        assert f" {fd} -> socket:[{os.fstat(fd).st_ino}]" in told
        assert str(os.fstat(ours.fileno()).st_ino) not in told
        assert "LANG=C.UTF-8" in told
        assert "sesame" not in told
        assert theirs.fileno() == fd, "it is the caller's to close"


def test_they_are_the_products_own_user_where_there_is_one_and_else_nobody_that_has_an_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ours = pwd.struct_passwd(("agentsh-net", "x", 990, 991, "", "/", ""))
    monkeypatch.setattr(pwd, "getpwnam", {"agentsh-net": ours}.__getitem__)
    assert identity() == Identity(990, 991)
    monkeypatch.setattr(pwd, "getpwnam", {}.__getitem__)
    monkeypatch.setattr(pwd, "getpwuid", {65519: ours}.__getitem__)
    monkeypatch.setattr(grp, "getgrgid", {65518: ("agentsh-net", "x", 65518, [])}.__getitem__)
    assert identity() == Identity(65517, 65517)
