"""On a machine of its own the daemon pins its links in the host's bpffs by itself, and whatever it leaves there is found again."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from agentsh_net.kernel.leftovers import leftovers
from netns.daemon import running
from netns.scene import attempt

IN_A_GUEST = "AGENTSH_NET_VM" in os.environ
pytestmark = [
    pytest.mark.kernel,
    pytest.mark.alone,
    pytest.mark.skipif(not IN_A_GUEST, reason="attaches to the machine's own cgroup root: ./dev vm"),
]

EVIL, PORT = "10.99.0.2", 8000
POLICY = {
    "sandbox": {
        "mcp": {
            "servers": [{"id": "evil", "type": "http", "url": f"http://{EVIL}:{PORT}/mcp"}],
            "server_policy": "denylist",
            "denied_servers": [{"id": "evil"}],
        }
    },
    "network": {"mode": "enforce", "layers": ["ebpf"], "required": True},
    "proxy": {"mode": "disabled"},
}


def test_links_are_pinned_in_the_first_process_s_bpffs_and_outlive_a_crash(tmp_path: Path) -> None:
    bpffs = Path("/sys/fs/bpf")
    if not bpffs.is_mount():  # as systemd does it
        subprocess.run(["mount", "-t", "bpf", "-o", "mode=700", "bpf", bpffs], check=True)
    with running(tmp_path, POLICY) as daemon:
        [programs, _] = json.loads(daemon.cli("status", "--json"))["layers"]
        [folder] = bpffs.glob("agentsh-net/1/*")
        daemon.crash()
        said = [attempt(EVIL, PORT)]
        daemon.start()
        said.append(attempt(EVIL, PORT))
        again = list(bpffs.glob("agentsh-net/1/*"))
        assert daemon.stop() == 0
    assert programs["attachment"] == f"links pinned in {folder}"
    assert said == ["EPERM", "EPERM"]
    assert len(again) == 1
    assert again != [folder]
    assert leftovers() == []
    assert not (bpffs / "agentsh-net").exists()
