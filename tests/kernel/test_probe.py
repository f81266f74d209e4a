"""Doctor's probes say what is missing and which command mends it, and change nothing."""

from __future__ import annotations

import errno
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from netns import box

from agentsh_net import capabilities
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel import distribution, probe
from agentsh_net.kernel.bpf import headers, loader
from agentsh_net.kernel.cgroups import cgroup
from agentsh_net.kernel.leftovers import leftovers
from agentsh_net.kernel.netlink import Netlink
from agentsh_net.kernel.sockets.diag import UNLISTED


@pytest.mark.kernel
def test_on_this_host_everything_is_usable_and_nothing_is_left_behind() -> None:
    def inside() -> tuple[list[probe.Probe], list[str], list[str]]:
        box.mount_bpffs()
        return probe.probe(), leftovers(), [path.name for path in Path(box.BPFFS).iterdir() if path.is_dir()]

    found, left, pinned = box.in_box(inside)
    assert any("attachment: links, to be pinned in /sys/fs/bpf/agentsh-net/" in p.detail for p in found)
    assert pinned == []
    assert [p for p in found if not p.usable] == []
    assert {p.layer for p in found} == {"ebpf", "nftables", "sweep", "cgroups"}
    assert left == []


@pytest.mark.parametrize(
    ("release", "usable"),
    [("6.1.0-13-amd64", True), ("5.8.0", True), ("5.4.0-150-generic", False), ("4.19", False)],
)
def test_a_kernel_without_ring_buffers_is_too_old(release: str, usable: bool) -> None:
    assert probe._kernel(release).usable is usable


def test_a_user_without_privilege_is_told_to_be_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capabilities, "effective", lambda: 1 << 12)
    found = probe._privilege("ebpf", ("CAP_BPF", "CAP_NET_ADMIN"))
    assert (found.usable, found.reason) == (False, "lacks CAP_BPF")
    assert found.remedy


@pytest.mark.parametrize(
    ("absent", "reason", "remedy"),
    [
        ("bcc", "not installed", "sudo apt install python3-bpfcc"),
        ("bcc.libbcc", "another project", "pip uninstall bcc; sudo apt install python3-bpfcc"),
    ],
)
def test_an_absent_bcc_and_pypis_namesake_are_told_apart(
    monkeypatch: pytest.MonkeyPatch, absent: str, reason: str, remedy: str
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == absent else object())
    monkeypatch.setattr(distribution, "PLACE", Path("/nonexistent"))
    found = probe._bcc()
    assert not found.usable
    assert reason in found.reason
    assert found.remedy == remedy


@pytest.mark.parametrize(
    "fault", [OSError("libbpf.so.1: no such file"), ImportError("libbpf.so.1: no such file")]
)
def test_a_bcc_whose_library_is_broken_is_told_with_what_mends_it(
    monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def find(name: str) -> object:
        if name == "bcc":
            return object()
        raise fault

    monkeypatch.setattr(importlib.util, "find_spec", find)
    found = probe._bcc()
    assert not found.usable
    assert found.reason == "python3-bpfcc cannot be loaded: libbpf.so.1: no such file"
    assert found.remedy.startswith("sudo apt install --reinstall")


def test_a_kernel_that_lists_no_sockets_is_not_taken_for_one_that_destroys_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without tcp_diag it says of every socket, there or not, that there is no such entry."""

    def ask(*_: object, **__: object) -> None:
        raise FileNotFoundError(errno.ENOENT, "No such file or directory")

    monkeypatch.setattr(Netlink, "ask", ask)
    monkeypatch.setattr(capabilities, "effective", lambda: -1)
    found = probe._sweep()
    assert not found.usable
    assert (found.reason, found.remedy) == (str(UNLISTED), UNLISTED.remedy)


NO_PROBES = KernelError("the kernel refused p: R2 !read_ok\nthe whole log", remedy="mend it")


def probes(
    monkeypatch: pytest.MonkeyPatch, which: str, *, prebuilt: bool, bcc: bool
) -> tuple[list[bool], str]:
    """Return what is usable and all that is said, on a host that has these of the two ways to load."""

    def load() -> loader.Loaded:
        if prebuilt:
            return loader.Loaded({}, {}, "prebuilt by somebody")
        raise NO_PROBES

    monkeypatch.setattr(loader, "load_prebuilt", load)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: object() if bcc else None)
    monkeypatch.setattr(distribution, "PLACE", Path("/nonexistent"))
    found = list(probe._probes(which))
    return [p.usable for p in found], " | ".join(p.reason or p.detail for p in found)


def test_with_prebuilt_probes_neither_bcc_nor_headers_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    usable, said = probes(monkeypatch, "auto", prebuilt=True, bcc=False)
    assert usable == [True, True]
    assert "prebuilt by somebody" in said
    assert "none needed: python3-bpfcc is not installed" in said


def test_where_the_prebuilt_probes_fail_bcc_is_enough_and_the_reason_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usable, said = probes(monkeypatch, "auto", prebuilt=False, bcc=True)
    assert all(usable)
    assert said.startswith("no prebuilt probes (the kernel refused p: R2 !read_ok), but BCC | ")


def test_without_either_way_both_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    usable, said = probes(monkeypatch, "auto", prebuilt=False, bcc=False)
    assert usable[:2] == [False, False]
    assert "the whole log" in said
    assert "python3-bpfcc is not installed" in said


@pytest.mark.parametrize(("which", "bcc"), [("prebuilt", True), ("bcc", False)])
def test_a_loader_that_is_asked_for_by_name_is_not_replaced_by_the_other(
    monkeypatch: pytest.MonkeyPatch, which: str, bcc: bool
) -> None:
    usable, _ = probes(monkeypatch, which, prebuilt=which == "bcc", bcc=bcc)
    assert usable[0] is False


def test_an_absent_binding_is_one_probe_that_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(distribution, "PLACE", Path("/nonexistent"))
    found = [p for p in probe._nftables() if p.remedy == "sudo apt install python3-nftables"]
    assert len(found) == 1
    assert not found[0].usable


def test_a_host_without_cgroup2_is_told_how_to_mount_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def root() -> Path:
        raise KernelError("no cgroup v2 hierarchy is mounted", remedy=cgroup.REMEDY)

    monkeypatch.setattr(cgroup, "root", root)
    found = next(p for p in probe._ebpf("auto") if p.detail == "cgroup v2 hierarchy")
    assert (found.usable, found.remedy) == (False, cgroup.REMEDY)


def test_an_installation_without_any_header_tree_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(headers, "candidates", lambda source, scratch: iter(()))
    found = probe._attempt("ebpf", "headers for BCC", probe._headers)
    assert not found.usable
    assert found.remedy.startswith("sudo apt install linux-headers")


def test_what_the_system_refuses_is_a_probe_and_no_exception() -> None:
    def refuse() -> str:
        raise PermissionError(1, "Operation not permitted")

    found = probe._attempt("sweep", "a thing", refuse)
    assert (found.usable, found.reason) == (False, "a thing: Operation not permitted")


@pytest.mark.kernel
def test_who_has_no_capability_is_told_so_of_every_layer() -> None:
    def inside() -> list[list[object]]:
        code = "import json; from agentsh_net.kernel.probe import probe; print(json.dumps([[p.layer, p.usable] for p in probe()]))"
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-c", code]
        environ = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    found = box.in_box(inside)
    for layer in ("ebpf", "nftables", "sweep"):
        assert [layer, False] in found
    assert ["sweep", True] not in found
