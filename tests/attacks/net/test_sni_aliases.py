"""Row 24 by the name that the denied one is an alias of (CNAME): the same host answers by that too, and policy does not have it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attacks.net.test_sni import BAD, CUT, EVIL, GOOD, WEB
from netns import box, tls
from netns.daemon import running
from netns.name_server import NameServer
from netns.scene import listening

pytestmark = pytest.mark.kernel

POOL = "pool.test"


def visited(folder: Path) -> dict[str, Any]:
    pem = tls.authority(folder, EVIL, GOOD, WEB, POOL)
    server, trust = tls.TlsServer([listening(box.there(), BAD)], pem), tls.context(pem)
    names = NameServer()
    names.records = {(name, "A"): [BAD] for name in (GOOD, POOL)}
    names.aliases = {EVIL: POOL}
    rules = {
        "servers": [
            {"id": name, "type": "http", "url": f"https://{name}.test/mcp"} for name in ("evil", "good")
        ],
        "server_policy": "denylist",
        "denied_servers": [{"id": "evil"}],
    }
    network = {"mode": "enforce", "required": True, "layers": ["ebpf"], "on_shared_address": "sni"}
    policy = {
        "sandbox": {"mcp": rules},
        "network": {**network, "resolve": {"min_ttl": "1s", "max_ttl": "1s", "grace": "1s"}},
    }
    said: dict[str, Any] = {}
    with running(folder, policy) as daemon:
        said["an alias"] = {name: tls.visit(trust, name, BAD) for name in (EVIL, POOL, GOOD, WEB)}
        said["event"] = daemon.await_connection(action="block", sni=POOL)
        names.aliases = {EVIL: GOOD}  # whose name is denied chooses where it leads
        box.await_that(lambda: POOL in tls.visit(trust, POOL, BAD))
        said["of an allowed server"] = {name: tls.visit(trust, name, BAD) for name in (EVIL, GOOD)}
        assert daemon.stop() == 0
    return {**said, "heard": set(server.heard)}


def test_a_denied_server_is_refused_by_the_name_that_its_own_leads_to_and_no_allowed_one_is(
    tmp_path: Path,
) -> None:
    said = box.in_box(visited, tmp_path)
    answered = {name: f"1 bytes for {name}" for name in (GOOD, WEB)}
    assert said["an alias"] == {EVIL: CUT, POOL: CUT, **answered}
    assert (said["event"]["server_id"], said["event"]["layer"]) == ("evil", "ebpf")
    assert said["of an allowed server"] == {EVIL: CUT, GOOD: answered[GOOD]}
    assert EVIL not in said["heard"]
