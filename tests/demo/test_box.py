"""The corner is a cgroup and a network of its own, and is gone with everything in it when its block ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agentsh_net.core.errors import KernelError
from agentsh_net.demo import box

INSIDE = """
import sys, time
from pathlib import Path
from agentsh_net.demo import box
box.enter(Path(sys.argv[1]))
links = [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]]
print(open("/proc/self/cgroup").read().strip().splitlines()[-1], Path("/sys/fs/cgroup/cgroup.procs").exists(), ",".join(links), flush=True)
time.sleep(1000)
"""


@pytest.mark.kernel
def test_a_process_in_the_corner_sees_its_own_cgroup_and_network_and_ends_with_it() -> None:
    with box.corner() as cgroup:
        process = subprocess.Popen(
            [sys.executable, "-c", INSIDE, str(cgroup)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline().split() == ["0::/", "True", "lo"]
        assert os.readlink(f"/proc/{process.pid}/ns/net") != os.readlink("/proc/self/ns/net")
    assert process.wait(60) == -9
    assert not cgroup.exists()


COVERED = """
import subprocess
from agentsh_net.demo import box
subprocess.run(["mount", "--make-rprivate", "/"], check=True)
subprocess.run(["mount", "-t", "cgroup2", "none", "/sys/fs/cgroup"], check=True)
print(box.cgroup_mount(), flush=True)
"""


@pytest.mark.kernel
def test_a_hierarchy_that_another_mount_covers_is_not_the_one() -> None:
    command = ["unshare", "-m", "-C", sys.executable, "-c", COVERED]
    assert subprocess.run(command, check=True, capture_output=True, text=True).stdout == "/sys/fs/cgroup\n"


def test_without_cgroup_v2_there_is_none_and_the_remedy_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "cgroup_mount", lambda: None)
    with pytest.raises(KernelError) as refused, box.corner():
        pass
    assert "mount -t cgroup2" in refused.value.remedy


def test_where_no_cgroup_can_be_made_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(box, "cgroup_mount", lambda: tmp_path / "nowhere")
    with pytest.raises(KernelError, match="no cgroup can be made"), box.corner():
        pass
