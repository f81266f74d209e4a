"""The sets are those that the kernel tells of, and what is given up is gone: from the thread, and from what it runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh_net import capabilities

SCRIPT = """
import subprocess
from agentsh_net import capabilities
capabilities.bound(capabilities.mask(["CAP_KILL", "CAP_BPF"]))
capabilities.keep(1 << 39, 1 << 39 | 1 << 5, 0)
capabilities.gain_nothing()
subprocess.run(["grep", "-E", "^(Cap(Inh|Prm|Eff|Bnd)|NoNewPrivs)", "/proc/self/status"])
print(capabilities.effective())
"""


def status(name: str) -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/thread-self/status").read_text().splitlines())
    return int(lines[name], 16)


def test_what_is_held_is_what_the_kernel_says() -> None:
    assert capabilities.effective() == status("CapEff")


def test_a_set_has_what_its_mask_names() -> None:
    held = capabilities.mask(["CAP_CHOWN", "CAP_BPF"])
    assert held == 1 | 1 << 39
    assert [name for name in capabilities.NUMBERS if capabilities.has(held, name)] == ["CAP_CHOWN", "CAP_BPF"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to give up")
def test_what_is_given_up_is_gone_on_both_sides_of_the_32nd_bit() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    *told, effective = done.stdout.splitlines()
    both = 1 << 39 | 1 << 5
    sets = {name: int(value, 16) for name, value in (line.split(":\t") for line in told)}
    # Root's programs get what is bounding, but with no_new_privs no more than was permitted.
    assert sets["CapBnd"] == both & status("CapBnd")
    assert sets["CapPrm"] & ~both == 0
    assert (sets["CapInh"], sets["NoNewPrivs"], int(effective)) == (0, 1, 1 << 39)


def test_what_the_kernel_refuses_is_an_error_with_the_name_of_the_call() -> None:
    with pytest.raises(OSError, match=r"prctl\(-1\)"):
        capabilities.prctl(-1, 0)
