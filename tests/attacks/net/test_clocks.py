"""Rows 21, 28, 32, 34 while the clock lies: days forwards, weeks back, asleep for hours, and in a time namespace, what was refused is
refused and told."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from attacks.net.test_names import FIRST, MOVED, REFUSALS, asked_again, policy
from netns import box
from netns.box import await_that
from netns.daemon import running
from netns.name_server import NameServer
from netns.scene import attempt, listening
from netns.stage import BOTH, PLANES

pytestmark = pytest.mark.kernel

DAY = 86_400
# Nobody sets this machine's clocks: the daemon's are set, by what Python loads before everything else.
SET = """
import pathlib, time
_set, _slept = (pathlib.Path(__file__).with_name(name) for name in ("set", "slept"))
_time, _time_ns, _read = time.time, time.time_ns, time.clock_gettime
time.time = lambda: _time() + int(_set.read_text())
time.time_ns = lambda: _time_ns() + int(_set.read_text()) * 1_000_000_000
time.clock_gettime = lambda clock: _read(clock) + (int(_slept.read_text()) if clock == time.CLOCK_BOOTTIME else 0)
"""


class Clock:
    """The daemon's clocks, to be set by so many seconds."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder
        (folder / "sitecustomize.py").write_text(SET)
        self.set(0)
        self.sleep(0)

    def set(self, by: int) -> None:
        """Set what people read."""
        self._write("set", by)

    def sleep(self, seconds: int) -> None:
        """As a machine that was asleep so long in all: the time since boot goes on, the monotonic one stood still."""
        self._write("slept", seconds)

    def _write(self, what: str, by: int) -> None:
        """In one step: it is read at any moment."""
        scratch = self._folder / f"{what}.new"
        scratch.write_text(str(by))
        scratch.rename(self._folder / what)

    @contextmanager
    def in_daemons(self) -> Iterator[None]:
        before = os.environ.get("PYTHONPATH", "")
        os.environ["PYTHONPATH"] = f"{self._folder}:{before}"
        try:
            yield
        finally:
            os.environ["PYTHONPATH"] = before


def set_about(folder: Path) -> dict[str, Any]:
    there = box.there()
    servers = [listening(there, address, 8000) for address in (FIRST, MOVED)]
    names, clock = NameServer(), Clock(folder / "clock")
    names.records = {("evil.test", "A"): [FIRST]}
    said: dict[str, Any] = {"refused": set(), "asked": []}
    off = {"proxy": {"mode": "disabled"}, "gateway": {"enabled": False}}
    with clock.in_daemons(), running(folder, policy(BOTH) | off) as daemon:
        for days in (10, -20, 0):
            clock.set(days * DAY)
            before, began = names.asked, time.monotonic()
            asked_again(names)
            said["asked"].append((names.asked - before) / (time.monotonic() - began))
            said["refused"].add(attempt(FIRST, 8000))
            newest = await_that(lambda d=days: next((e for e in daemon.connections() if near(e, d)), None))
            said[days] = newest["id"]
        # Who moved while the clock was wrong is followed, and who is not answered for is not forgotten.
        clock.set(-20 * DAY)
        names.records = {("evil.test", "A"): [MOVED]}
        await_that(lambda: attempt(MOVED, 8000) in REFUSALS)
        names.failing = True
        clock.set(400 * DAY)
        asked_again(names)
        said["refused"].add(attempt(MOVED, 8000))
        said["states"] = daemon.cli("mcp", "events", "--type", "layer_state_changed", "--json")
        assert daemon.stop() == 0
    assert servers
    return said


def near(event: dict[str, Any], days: int) -> bool:
    """Say whether an event is of now and so many days."""
    stamp = datetime.fromisoformat(event["timestamp"]).timestamp()
    return abs(stamp - time.time() - days * DAY) < DAY


def test_a_clock_that_is_set_about_changes_neither_what_is_refused_nor_when_names_are_asked_for(
    tmp_path: Path,
) -> None:
    said = box.in_box(set_about, tmp_path)
    assert said["refused"] == {"EPERM"}
    assert said["states"].strip() == "[]"
    # Six questions (three names, two kinds) a second by their TTL; ten times as many would be a clock that runs.
    assert max(said["asked"]) < 60
    # What happened later is later, whatever the clock said.
    assert said[10] < said[-20] < said[0]


def asleep(folder: Path, layers: tuple[str, ...]) -> dict[str, Any]:
    """A machine sleeps for hours; the name moves meanwhile, and then nobody answers for it any more."""
    there = box.there()
    servers = [listening(there, address, 8000) for address in (FIRST, MOVED)]
    names, clock = NameServer(), Clock(folder / "clock")
    names.records = {("evil.test", "A"): [FIRST]}
    rules = policy(layers, "evil") | {"proxy": {"mode": "disabled"}, "gateway": {"enabled": False}}
    rules["network"]["resolve"] = {"min_ttl": "1h", "max_ttl": "1h", "snoop_dns": False}
    said: dict[str, Any] = {}
    with clock.in_daemons(), running(folder, rules) as daemon:
        said["before"] = [attempt(FIRST, 8000), attempt(MOVED, 8000)]
        # Told of after the name moved on, it would be told without its server.
        daemon.await_connection(server_id="evil")
        names.records = {("evil.test", "A"): [MOVED]}
        clock.sleep(2 * 3600)
        await_that(lambda: attempt(MOVED, 8000) in REFUSALS)
        names.failing = True
        for hours in (3, 4, 30):
            clock.sleep(hours * 3600)
            asked_again(names, 2)
        said["nobody answers"] = attempt(MOVED, 8000)
        said["states"] = daemon.cli("mcp", "events", "--type", "layer_state_changed", "--json").strip()
        said["told"] = {
            (e["server_id"], e["remote_addr"]) for e in daemon.connections() if e["action"] == "block"
        }
        assert daemon.stop() == 0
    assert servers
    return said


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_machine_that_slept_follows_a_name_at_once_and_forgets_none_that_nobody_answers_for(
    tmp_path: Path, layers: tuple[str, ...]
) -> None:
    said = box.in_box(asleep, tmp_path, layers)
    refusal = "EPERM" if "ebpf" in layers else "ECONNREFUSED"
    assert said["before"] == [refusal, "connected"]
    assert said["nobody answers"] == refusal
    assert said["states"] == "[]"
    assert said["told"] == {("evil", f"{FIRST}:8000"), ("evil", f"{MOVED}:8000")}


def in_time_namespace(folder: Path) -> tuple[str, float]:
    there = box.there()
    off = {"proxy": {"mode": "disabled"}, "gateway": {"enabled": False}}
    mcp = {"servers": [{"id": "evil", "type": "http", "url": f"http://{FIRST}:8000/mcp"}]}
    denied = {"sandbox": {"mcp": mcp | {"denied_servers": [{"id": "evil"}]}}}
    network = {"network": {"mode": "enforce", "layers": ["ebpf"], "required": True}}
    slept = ("unshare", "--time", "--boottime", str(10 * DAY), "--fork", "--kill-child")
    with listening(there, FIRST, 8000), running(folder, denied | network | off, slept) as daemon:
        said, when = attempt(FIRST, 8000), time.time()
        event = daemon.await_connection(action="block")
        stamp = datetime.fromisoformat(event["timestamp"]).timestamp()
        daemon.cli("down")
        daemon.process.wait(60 * box.SLOWNESS)
        return said, stamp - when


def test_an_event_has_the_time_of_the_refusal_in_a_time_namespace_too(tmp_path: Path) -> None:
    said, late = box.in_box(in_time_namespace, tmp_path)
    assert said == "EPERM"
    assert abs(late) < 5
