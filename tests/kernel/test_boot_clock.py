"""Names age while the machine sleeps, and a time namespace is told from the kernel's own time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh_net.kernel import boot_clock

ELSEWHERE = """
import time
from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.kernel import boot_clock
from agentsh_net.kernel.names.resolver import Resolver
made = Resolver(Resolve(), changed=print)
print(round(made._clock() - time.monotonic()), boot_clock.namespace_offset())
"""


@pytest.mark.parametrize(
    ("text", "offset"),
    [
        ("monotonic           0         0\nboottime        86400         5\n", 86_400_000_000_005),
        ("monotonic 7 0\nboottime -2 500000000\n", -1_500_000_000),
        ("monotonic 7 0\n", 0),
        ("", 0),
    ],
)
def test_the_offset_is_that_of_the_boot_clock(tmp_path: Path, text: str, offset: int) -> None:
    (tmp_path / "offsets").write_text(text)
    assert boot_clock.namespace_offset(tmp_path / "offsets") == offset


def test_a_kernel_without_time_namespaces_has_none(tmp_path: Path) -> None:
    assert boot_clock.namespace_offset(tmp_path / "none") == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="a time namespace is made by root")
def test_the_clock_of_names_counts_what_the_monotonic_one_leaves_out() -> None:
    """As after a day's sleep: in a namespace in which the two clocks are a day apart."""
    slept = ["unshare", "--time", "--boottime", "1000000", "--monotonic", "0", "--fork"]
    done = subprocess.run(
        [*slept, sys.executable, "-c", ELSEWHERE], capture_output=True, text=True, check=True
    )
    difference, offset = map(int, done.stdout.split())
    assert difference >= 1_000_000
    assert offset == 1_000_000_000_000_000
