"""The supervisor keeps the capabilities that it has a reason for, and nothing it starts can get the others back."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from agentsh_net import capabilities
from agentsh_net.privileges import KEPT

SCRIPT = """
import subprocess, sys
from agentsh_net import privileges
privileges.reduce()
subprocess.run(["grep", "-E", "^Cap(Prm|Eff|Bnd)", "/proc/self/status"])
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to give up")
def test_a_child_of_the_supervisor_has_no_more_than_what_is_kept() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    sets = [int(line.split()[1], 16) for line in done.stdout.splitlines()]
    assert len(sets) == 3
    allowed = capabilities.mask(KEPT)
    assert all(found & ~allowed == 0 for found in sets)
    assert all(capabilities.has(found, "CAP_NET_ADMIN") for found in sets)
