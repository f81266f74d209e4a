"""Writes after each test file what came of it and how long it took, says failures at once, and leaves out what is done already.

A pytest plugin for guests, where a run takes long enough to be broken off. AGENTSH_NET_VM_RESULTS names the file that has one line for
each file that is through; of an earlier run of the same guest it says what need not be run again. Where xdist's workers run the
tests, whole files each, they write and the first process says.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import pytest

PASSED = "passed"


class Progress:
    """What came of the file that is being run. `results`: where it is written."""

    def __init__(self, results: Path | None) -> None:
        self._results = results
        self._file = ""
        self._came: Counter[str] = Counter()
        self._began = time.monotonic()
        self._terminal: pytest.TerminalReporter | None = None

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        self._terminal = session.config.pluginmanager.get_plugin("terminalreporter")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave out the files of which an earlier run says that they passed."""
        through = done(self._results)
        out = [item for item in items if item.nodeid.partition("::")[0] in through]
        if out:
            config.hook.pytest_deselected(items=out)
            items[:] = [item for item in items if item not in out]

    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        file = item.nodeid.partition("::")[0]
        if file != self._file:
            self._close()
            self._file, self._began = file, time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._say(f"failed {report.nodeid}\n{report.longreprtext}")
        if report.outcome != PASSED or report.when == "call":
            self._came[report.outcome if report.when == "call" or report.skipped else "failed"] += 1

    def pytest_sessionfinish(self) -> None:
        self._close()

    def _close(self) -> None:
        if not self._file:
            return
        verdict = "failed" if self._came["failed"] else PASSED
        came = ", ".join(f"{count} {outcome}" for outcome, count in sorted(self._came.items()))
        line = f"{verdict} {self._file}: {came} in {time.monotonic() - self._began:.0f} s"
        if self._results is not None:
            with self._results.open("a") as results:
                results.write(f"{line}\n")
        self._came.clear()
        self._file = ""

    def _say(self, what: str) -> None:
        """Say it at once: the summary comes at the end, which may be an hour away."""
        if self._terminal is not None:
            self._terminal.ensure_newline()
            self._terminal.write_line(f"vm: {what}")


def done(results: Path | None) -> set[str]:
    """Return the files that passed, as the results tell."""
    if results is None or not results.exists():
        return set()
    lines = [line.split(maxsplit=2) for line in results.read_text().splitlines()]
    return {words[1].removesuffix(":") for words in lines if words[:1] == [PASSED]}


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugin."""
    where = os.environ.get("AGENTSH_NET_VM_RESULTS")
    progress = Progress(Path(where) if where else None)
    config.pluginmanager.register(progress, "vm-progress")
