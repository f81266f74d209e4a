"""Every process that the supervisor starts gives up its privileges before it does anything, or does not run and says why."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest
from agentsh_proxy import dns_stub, launching, page, worker

Main = Callable[[list[str]], int]
# Whose descriptors are no open files: a process that got past its confinement would break on them.
PROCESSES = [
    pytest.param(
        worker.main, ["--charge-fd", "-1", "--refusing-fd", "-1", "--journal-fd", "-1"], id="worker"
    ),
    pytest.param(page.main, ["--listen-fd", "-1"], id="page"),
    pytest.param(dns_stub.main, ["--udp-fd", "-1", "--tcp-fd", "-1"], id="dns stub"),
]


@pytest.mark.parametrize(("main", "own"), PROCESSES)
def test_a_process_that_cannot_be_confined_does_not_run_and_says_why(
    main: Main, own: list[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(uid: int, gid: int, *, supervisor: int, keep_user: bool) -> int:
        raise OSError(f"no way to become {uid}:{gid}, child of {supervisor}, {keep_user}")

    monkeypatch.setattr("agentsh_proxy.launching.confine", refuse)
    with caplog.at_level(logging.ERROR):
        status = main(
            ["--link-fd", "-1", "--uid", "7", "--gid", "8", "--supervisor", "9", "--keep-user", *own]
        )
    assert status == launching.EXIT_UNCONFINED
    assert "no way to become 7:8, child of 9, True" in caplog.text


def test_nobody_is_become_without_a_word_of_whom() -> None:
    options = launching.arguments("x").parse_args(["--link-fd", "3"])
    assert (options.uid, options.gid, options.keep_user) == (65534, 65534, False)
