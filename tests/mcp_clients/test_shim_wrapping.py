"""A command that runs under the shim is recognised however the shim is called, and what it wraps comes out as it went in."""

from __future__ import annotations

import pytest

from agentsh_net.mcp_clients.shim_wrapping import words, wrapped

OWN = ["npx", "-y", "server", "--", "--server", "x"]


@pytest.mark.parametrize(
    "program",
    [
        ["agentsh-net"], ["/usr/bin/agentsh-net"], ["/opt/venv/bin/python", "-m", "agentsh_net"],
        ["/usr/bin/agentsh-net", "--socket", "/tmp/c.sock"], ["python3", "-m", "agentsh_net", "--socket", "/tmp/c.sock"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("server_id", ["fs", "a b", "--", "shim"])
def test_what_was_wrapped_is_found(program: list[str], server_id: str) -> None:
    command = [*words(program, server_id), *OWN]
    found = wrapped(command)
    assert found is not None
    assert (found.server_id, list(found.command), found.before) == (server_id, OWN, len(command) - len(OWN))


def test_options_of_the_users_own_are_no_hindrance() -> None:
    found = wrapped(["agentsh-net", "shim", "--hide-denied", "--server", "fs", "--fail-closed", "--", "x"])
    assert found is not None and found.command == ("x",)


@pytest.mark.parametrize(
    "command",
    [
        [], ["npx"], ["agentsh-net"], ["agentsh-net", "run"], ["agentsh-net", "shim"], ["agentsh-net", "shim", "--server", "fs"],
        ["agentsh-net", "shim", "--server", "fs", "--"], ["agentsh-net", "shim", "--", "x"], ["agentsh-net", "shim", "--new", "--", "x"],
        ["npx", "agentsh-net", "shim", "--server", "fs", "--", "x"], ["python", "-m", "other", "shim", "--server", "fs", "--", "x"],
        ["my-agentsh-net", "shim", "--server", "fs", "--", "x"], ["agentsh-net", "--socket"],
    ],
)  # fmt: skip
def test_what_is_not_wrapped_is_not(command: list[str]) -> None:
    assert wrapped(command) is None
