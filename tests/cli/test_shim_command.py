"""Where the quick reading of `shim` gives up, click reads it the same way, and explains what is wrong."""

from __future__ import annotations

import pytest

from agentsh_net.cli import shim
from agentsh_net.core.configuration import scalars


@pytest.fixture
def started(monkeypatch):
    seen = []
    monkeypatch.setattr(shim, "run", lambda options: seen.append(options) or 7)
    return seen


def test_click_reads_what_the_quick_way_reads(run, socket, started):
    for words in (
        ("shim", "--server", "fs", "--", "cat", "-n"),
        ("shim", "--server", "fs", "--hide-denied", "--fail-closed", "--", "cat", "--", "x"),
    ):
        assert run(*words).exit_code == 7
        quick = shim.read(("--socket", str(socket), *words))
        by_click = started.pop()
        for name in ("server", "socket", "hide", "closed", "command"):
            assert getattr(by_click, name) == getattr(quick, name)


def test_options_may_be_joined_to_their_values(run, started):
    assert run("shim", "--server=fs", "--", "cat").exit_code == 7
    assert started[0].server == "fs"


@pytest.mark.parametrize(
    "words",
    [
        ("shim", "--", "cat"), ("shim", "--server", "fs"), ("shim", "--nonsense", "--", "cat"),
        ("shim", "--server", "", "--", "cat"), ("shim", "--server", "x" * (scalars.MAX_ID + 1), "--", "cat"),
    ],
)  # fmt: skip
def test_a_mistake_is_a_usage_error(run, started, words):
    assert run(*words).exit_code == 2
    assert not started


def test_an_id_that_no_policy_can_have_is_no_plain_line_either():
    longest = "x" * scalars.MAX_ID
    assert shim.read(["shim", "--server", longest, "--", "cat"]).server == longest
    assert shim.read(["shim", "--server", longest + "x", "--", "cat"]) is None
