"""A worker has the shortest slice where the kernel knows slices, keeps its niceness, and runs all the same where it may not ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from agentsh_proxy import scheduling

# sched_getattr(2) of x86_64: what the kernel holds, as (nice, runtime).
SCRIPT = """
import ctypes, json, os, struct, sys
from agentsh_proxy.scheduling import ask_for_short_slices
os.nice(3)
os.sched_setscheduler(0, int(sys.argv[1]), os.sched_param(0))
agreed = ask_for_short_slices()
held = ctypes.create_string_buffer(48)
ctypes.CDLL(None).syscall(ctypes.c_long(315), 0, held, 48, 0)
_, policy, _, nice, _, runtime, _, _ = struct.unpack("=IIQiIQQQ", held.raw)
print(json.dumps([agreed, policy, nice, runtime]))
"""
KERNEL = tuple(map(int, os.uname().release.split(".")[:2]))


def asked(policy: int) -> list[int]:
    """Return what the kernel holds of a process that is nicer than this one by 3."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(policy)], env=env, capture_output=True, text=True, check=True
    )
    return json.loads(run.stdout)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="reads back by a system call number of x86_64")
def test_the_kernel_holds_the_shortest_slice_and_the_niceness_stays() -> None:
    agreed, policy, nice, runtime = asked(os.SCHED_OTHER)
    assert (agreed, policy, nice) == (True, os.SCHED_OTHER, min(os.nice(0) + 3, 19))
    if KERNEL >= (6, 12):
        assert runtime == scheduling.SLICE_NS


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="reads back by a system call number of x86_64")
def test_who_was_started_with_another_policy_keeps_it() -> None:
    agreed, policy, *_ = asked(os.SCHED_IDLE)
    assert (agreed, policy) == (False, os.SCHED_IDLE)


def test_a_machine_whose_system_call_is_not_known_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "pdp11")
    assert not scheduling.ask_for_short_slices()
