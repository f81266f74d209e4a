"""A first policy file: audit mode over the servers that were found, as text that explains itself and that `policy check` takes.

Pure but for the YAML library. What a client keeps in a server's environment stays where it is: the daemon starts no servers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from agentsh_net.core.naming.folding import visible
from agentsh_net.mcp_clients.declarations import Declared
from agentsh_net.mcp_clients.placeholders import PLACEHOLDER

HEAD = """\
# agentsh-net: audit mode. Everything is judged and recorded, nothing is blocked.
# When the events look right, set enforce_policy to true; then denied tools and changed definitions are blocked.
# Check this file: agentsh-net policy check FILE. Run it: sudo agentsh-net run --config FILE
version: 1
sandbox:
  mcp:
    enforce_policy: false
    # fail_closed: true             # block what no server was seen to offer
    # denied_tools: [{server: "*", tool: "delete_*"}]
    version_pinning: {enabled: true, on_change: block, auto_trust_first: true}
"""

NONE = "    servers: []   # no MCP client of this user declares one\n"


def text(found: Sequence[Declared], *, gateway_port: int | None = None) -> str:
    """Return the file's text; with a port, the gateway is on and listens there."""
    servers = "    servers:\n" + "".join(map(_entry, found)) if found else NONE
    return HEAD + servers + (_gateway(found, gateway_port) if gateway_port is not None else "")


def _gateway(found: Sequence[Declared], port: int) -> str:
    """Return the gateway's section: a server whose headers do not stand here, or not as they are sent, gets what its client sends."""
    plain = [
        s
        for s in found
        if s.declaration["type"] != "stdio" and (not s.declaration.get("headers") or _filled_in(s))
    ]
    servers = {str(server.declaration["id"]): {"passthrough": True} for server in plain}
    section = {"gateway": {"enabled": True, "port": port, **({"servers": servers} if servers else {})}}
    return yaml.safe_dump(section, sort_keys=False, allow_unicode=False, width=10_000)


def _entry(server: Declared) -> str:
    left = _filled_in(server)
    kept = {name: value for name, value in server.declaration.get("headers", {}).items() if name not in left}
    told = {k: v for k, v in server.declaration.items() if k not in {"env", "headers"}}
    shown = {key: _literal(value) for key, value in (told | ({"headers": kept} if kept else {})).items()}
    lines = yaml.safe_dump([shown], sort_keys=False, allow_unicode=False, width=10_000).splitlines()
    notes = [f"# from {server.client}: {visible(str(server.source))}"]
    if server.open_url:
        notes.append("# its client fills in a part of this URL")
    if left:
        notes.append(f"# its client fills in {', '.join(map(visible, left))}, and sends it itself")
    return "".join(f"      {line}\n" for line in (*notes, *lines))


def _filled_in(server: Declared) -> list[str]:
    """Return the headers that have a client's placeholder in them: only the client knows what they are."""
    headers = server.declaration.get("headers", {})
    return [name for name, value in headers.items() if PLACEHOLDER.search(value)]


def _literal(value: Any) -> Any:
    """Return a value whose `${` means itself: it is a placeholder of the client, not ours."""
    match value:
        case str():
            return value.replace("${", "$${")
        case Mapping():
            return {key: _literal(inner) for key, inner in value.items()}
        case list():
            return [_literal(inner) for inner in value]
        case _:
            return value
