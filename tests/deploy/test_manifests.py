"""What is deployed asks for the capabilities that the code keeps, no more, and carries policies that the code accepts."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from agentsh_net import __version__
from agentsh_net.core.configuration.config import parse
from agentsh_net.core.configuration.settings import Config
from agentsh_net.kernel.bpf.bpffs import VARIABLE
from agentsh_net.privileges import KEPT
from agentsh_net.workers.pool import DRAIN_SECONDS

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
MANIFESTS = sorted((DEPLOY / "kubernetes").glob("*.yaml"))


def documents(path: Path) -> dict[str, dict[str, Any]]:
    return {document["kind"]: document for document in yaml.safe_load_all(path.read_text())}


def policy(path: Path) -> Config:
    return parse(yaml.safe_load(documents(path)["ConfigMap"]["data"]["policy.yaml"]))


def containers(path: Path) -> dict[str, dict[str, Any]]:
    found = documents(path)
    spec = found["Pod"]["spec"] if "Pod" in found else found["DaemonSet"]["spec"]["template"]["spec"]
    return {c["name"]: c for c in (*spec.get("initContainers", ()), *spec["containers"])}


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_policy_in_it_is_one_that_enforces_and_must(path: Path) -> None:
    network = policy(path).network
    assert (network.mode, network.required) == ("enforce", True)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_the_image_is_this_version_and_its_root_is_read_only(path: Path) -> None:
    ours = containers(path)["agentsh-net"]
    assert ours["image"] == f"agentsh-net:{__version__}"
    assert ours["securityContext"]["readOnlyRootFilesystem"]
    writable = {m["mountPath"] for m in ours["volumeMounts"] if not m.get("readOnly")}
    assert {"/run/agentsh-net", "/var/lib/agentsh-net"} <= writable


def test_the_sidecar_has_net_admin_alone_and_the_agent_nothing() -> None:
    found = containers(DEPLOY / "kubernetes/sidecar.yaml")
    assert found["agentsh-net"]["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["NET_ADMIN"]}
    assert found["agent"]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert policy(DEPLOY / "kubernetes/sidecar.yaml").network.scope == "netns"


def test_the_agent_starts_when_the_sidecar_enforces() -> None:
    sidecar = containers(DEPLOY / "kubernetes/sidecar.yaml")["agentsh-net"]
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["startupProbe"]["exec"]["command"] == ["agentsh-net", "status"]


@pytest.mark.parametrize(("status", "lives"), [(0, True), (1, True), (4, False)])
def test_the_sidecar_is_restarted_when_no_daemon_answers_and_for_nothing_else(
    tmp_path: Path, status: int, lives: bool
) -> None:
    (program := tmp_path / "agentsh-net").write_text(f"#!/bin/sh\nexit {status}\n")
    program.chmod(0o755)
    probe = containers(DEPLOY / "kubernetes/sidecar.yaml")["agentsh-net"]["livenessProbe"]
    path = f"{tmp_path}:{os.environ['PATH']}"
    assert (subprocess.run(probe["exec"]["command"], env={"PATH": path}).returncode == 0) == lives


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_a_container_that_is_restarted_leaves_what_it_enforces(path: Path) -> None:
    assert policy(path).network.on_exit == "keep"


def test_on_a_node_it_has_what_it_keeps() -> None:
    asked = containers(DEPLOY / "kubernetes/daemonset.yaml")["agentsh-net"]["securityContext"]["capabilities"]
    assert asked["drop"] == ["ALL"]
    assert {f"CAP_{name}" for name in asked["add"]} == set(KEPT)


def test_on_a_node_links_are_pinned_in_the_nodes_own_bpffs_and_not_below_sys() -> None:
    path = DEPLOY / "kubernetes/daemonset.yaml"
    ours = containers(path)["agentsh-net"]
    where = {each["name"]: each["value"] for each in ours["env"]}[VARIABLE]
    (mount,) = (m for m in ours["volumeMounts"] if m["mountPath"] == where)
    volumes = {v["name"]: v for v in documents(path)["DaemonSet"]["spec"]["template"]["spec"]["volumes"]}
    assert volumes[mount["name"]]["hostPath"] == {"path": "/sys/fs/bpf", "type": "Directory"}
    assert mount["mountPropagation"] == "HostToContainer"
    assert not mount.get("readOnly")
    assert not where.startswith("/sys"), "AppArmor's profile for containers lets nobody write there"


def test_systemd_bounds_it_to_what_it_keeps() -> None:
    unit = (DEPLOY / "agentsh-net.service").read_text()
    (bound,) = re.findall(r"^CapabilityBoundingSet=(.*)$", unit, re.MULTILINE)
    assert set(bound.split()) == set(KEPT)


def test_systemd_asks_the_daemon_alone_to_stop_so_that_calls_of_stdio_servers_end() -> None:
    unit = (DEPLOY / "agentsh-net.service").read_text()
    assert re.findall(r"^KillMode=(.*)$", unit, re.MULTILINE) == ["mixed"]


def test_a_daemon_that_hangs_is_replaced_and_leaves_no_core() -> None:
    unit = (DEPLOY / "agentsh-net.service").read_text()
    assert re.findall(r"^Watchdog(?:Sec|Signal)=(.*)$", unit, re.MULTILINE) == ["120", "SIGKILL"]


def test_a_process_that_grew_too_much_does_not_end_the_service() -> None:
    unit = (DEPLOY / "agentsh-net.service").read_text()
    assert re.findall(r"^OOMPolicy=(.*)$", unit, re.MULTILINE) == ["continue"]


def test_the_image_holds_no_compiler_and_every_folder_that_the_wheel_needs() -> None:
    text = (DEPLOY / "Containerfile").read_text()
    assert "bpfcc" not in text
    assert {"agentsh_net", "proxy", "bpf"} <= set(re.findall(r"^COPY (\w+) ", text, re.MULTILINE))


def test_systemd_never_gives_up_restarting_it_and_waits_for_its_drain() -> None:
    unit = (DEPLOY / "agentsh-net.service").read_text()
    assert "\nRestart=on-failure\n" in unit
    assert "\nStartLimitIntervalSec=0\n" in unit[: unit.index("[Service]")]
    (patience,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(patience) >= DRAIN_SECONDS + 15  # workers, stdio servers, the store and the layers after it
