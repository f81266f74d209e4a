"""With CAP_NET_ADMIN and nothing else, as in a sidecar, the daemon refuses, closes, tells, and says what it cannot do."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from netns.box import await_that, in_box, there
from netns.daemon import running
from netns.scene import attempt, listening

pytestmark = pytest.mark.kernel

NET_ADMIN_ONLY = ("setpriv", "--bounding-set=-all,+net_admin", "--inh-caps=-all")


def policy(*denied: str) -> dict[str, Any]:
    return {
        "sandbox": {
            "mcp": {
                "servers": [{"id": "evil", "type": "http", "url": "http://10.99.0.2:8000/mcp"}],
                "denied_servers": [{"id": server} for server in denied],
            }
        },
        "network": {"mode": "enforce", "scope": "netns", "layers": ["ebpf", "nftables"], "required": True},
    }


def sidecar(folder: Path) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    with (
        listening(there(), "10.99.0.2", 8000),
        running(folder, policy(), NET_ADMIN_ONLY) as daemon,
        socket.create_connection(("10.99.0.2", 8000)) as standing,
    ):
        seen["supervisor"] = capabilities(daemon.process.pid)
        told = json.loads(daemon.cli("status", "--json"))
        seen["limits"] = [limit["missing"] for limit in told["limits"]]
        seen["layers"] = {layer["layer"]: (layer["wanted"], layer["in_force"]) for layer in told["layers"]}
        seen["worker"] = capabilities(told["proxy"]["workers"][0]["pid"])
        seen["doctor"] = daemon.cli("doctor", "--config", str(daemon.file), "--json")
        seen["allowed"] = attempt("10.99.0.2", 8000)
        daemon.write(policy("evil"))
        daemon.cli("reload")
        seen["denied"] = attempt("10.99.0.2", 8000)
        seen["event"] = daemon.await_connection(action="block", layer="nftables")
        seen["closed"] = daemon.await_connection(action="block", layer="sweep")["remote_addr"]
        seen["standing"] = await_that(lambda: ended(standing))
    return seen


def capabilities(pid: int) -> tuple[int, int, int]:
    """Return uid, effective capabilities and no_new_privs of a process."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = (
        re.search(rf"^{name}:\s*(\S+)", status, re.MULTILINE) for name in ("Uid", "CapEff", "NoNewPrivs")
    )
    uid, effective, privileges = (match[1] for match in found if match)
    return int(uid), int(effective, 16), int(privileges)


def ended(connection: socket.socket) -> str:
    try:
        connection.send(b"x")
    except OSError as error:
        return type(error).__name__
    return ""


def test_net_admin_alone_makes_a_sidecar_that_refuses_and_is_honest(tmp_path: Path) -> None:
    seen = in_box(sidecar, tmp_path)
    assert seen["supervisor"] == (0, 1 << 12, 0)
    assert seen["worker"] == (0, 0, 1)
    assert seen["layers"] == {"ebpf": (False, False), "nftables": (True, True)}
    assert seen["limits"] == [
        "no eBPF (network.scope is netns)",
        "no CAP_SYS_PTRACE",
        "no CAP_SETUID and CAP_SETGID",
    ]
    assert [row["layer"] for row in json.loads(seen["doctor"]) if row["wanted"] and not row["usable"]] == []
    assert (seen["allowed"], seen["denied"]) == ("connected", "ECONNREFUSED")
    assert (seen["event"]["remote_addr"], seen["event"]["server_id"], seen["event"]["uid"]) == (
        "10.99.0.2:8000", "evil", 0,
    )  # fmt: skip
    assert seen["closed"] == "10.99.0.2:8000"
    assert seen["standing"] in {"ConnectionAbortedError", "ConnectionResetError", "BrokenPipeError"}
