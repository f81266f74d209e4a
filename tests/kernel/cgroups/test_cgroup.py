"""The cgroup v2 hierarchy is found wherever it is mounted, and an id is found in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.cgroups import cgroup

UNIFIED = "31 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
HYBRID = """32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw"""
PARTIAL = """50 31 0:38 /docker/abc /mnt/part rw - cgroup2 cgroup2 rw
51 31 0:38 / /mnt/with\\040space rw - cgroup2 none rw"""


@pytest.mark.parametrize(
    ("mountinfo", "point"),
    [(UNIFIED, "/sys/fs/cgroup"), (HYBRID, "/sys/fs/cgroup/unified"), (PARTIAL, "/mnt/with space")],
    ids=["unified", "hybrid", "a part and the whole"],
)
def test_the_hierarchy_is_found_where_it_is_mounted(mountinfo: str, point: str) -> None:
    assert cgroup.root(mountinfo) == Path(point)


def test_a_host_without_it_is_told_how_to_get_it() -> None:
    with pytest.raises(KernelError) as caught:
        cgroup.root(HYBRID.splitlines()[0])
    assert "cgroup2" in caught.value.remedy


def test_an_id_is_the_path_below_the_root(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert cgroup.path_of(tmp_path, inner.stat().st_ino) == "/a/b"
    assert cgroup.path_of(tmp_path, tmp_path.stat().st_ino) == "/"


def test_an_unknown_id_has_no_path(tmp_path: Path) -> None:
    assert cgroup.path_of(tmp_path, 1 << 60) == ""
    assert cgroup.path_of(tmp_path / "gone", 1) == ""


def test_the_search_ends_on_a_host_with_very_many_cgroups(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cgroup, "_MAX_CGROUPS", 3)
    for n in range(10):
        (tmp_path / str(n)).mkdir()
    found = [cgroup.path_of(tmp_path, p.stat().st_ino) for p in tmp_path.iterdir()]
    assert 0 < sum(map(bool, found)) < 10
