"""What the control socket can ask of the daemon: one function per call, arguments checked, JSON-able results.

It changes nothing itself: every change goes through the daemon, one at a time.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agentsh_net import __version__
from agentsh_net.clock import now_rfc3339
from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import Peer
from agentsh_net.control.server import Handler
from agentsh_net.core import identity, llm_plan
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.folding import fold
from agentsh_net.core.identity import Identity
from agentsh_net.core.model import PinState, Tool, ToolCall
from agentsh_net.core.pins import trust
from agentsh_net.core.settings import Provider
from agentsh_net.core.snapshot import explain
from agentsh_net.current import Current
from agentsh_net.kernel.limits import limits
from agentsh_net.servers import inventory
from agentsh_net.store import queries, records, stories
from agentsh_net.store.bodies import MAX_SHOWN, Bodies, folder_beside

if TYPE_CHECKING:
    from agentsh_net.daemon import Daemon


Call = Callable[["Daemon", Mapping[str, Any], Peer], Awaitable[Any]]


def handlers(daemon: Daemon) -> Mapping[str, Handler]:
    """Return the calls there are, by name."""
    return {name: partial(_when_ready, call, daemon) for name, call in _CALLS.items()}


async def _when_ready(call: Call, daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> Any:
    if not daemon.ready and call is not _stop:
        raise ControlError("the daemon is starting", kind="busy", remedy="try again in a moment")
    return await call(daemon, args, peer)


async def _status(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG001 - see Call
    """Return what is in force: the kernel is asked now."""
    current = daemon.current
    mcp = current.snapshot.config.sandbox.mcp
    return {
        "version": __version__,
        "pid": os.getpid(),
        "started": daemon.started,
        "policy": {
            "generation": current.snapshot.generation,
            "digest": current.snapshot.digest,
            "path": str(current.loaded.path) if current.loaded.path else None,
            "mode": "enforce" if mcp.enforce_policy else "audit",
            "fail_closed": mcp.fail_closed,
            "pending": list(current.pending),
        },
        "layers": [asdict(status) for status in await daemon.layers.ask()],
        "limits": [asdict(limit) for limit in limits(current.loaded.config.network)],
        "proxy": _proxy(daemon),
        "store": asdict(daemon.writer.status()),
        "metrics": {"listen": daemon.page.url if daemon.page is not None else ""},
        "servers": _servers(daemon),
        **daemon.names.status(),
        "sessions": daemon.sessions.ids(),
        "running": [row["session_id"] for row in daemon.agents.describe() if row["running"]],
        "shims": daemon.desk.describe(),
        "notes": list(current.loaded.notes),
    }


def _proxy(daemon: Daemon) -> dict[str, Any]:
    pool, config = daemon.pool, daemon.current.loaded.config.proxy
    if pool is None:
        nothing: dict[str, Any] = {
            "mode": config.mode,
            "listen": "",
            "gateway": "",
            "workers": [],
            "counters": {},
        }
        return nothing | {"direct": _direct(daemon.current)}
    running = pool.pids
    missing = pool.size - len(running)
    return {
        "mode": config.mode,
        "listen": daemon.proxy_url,
        "gateway": daemon.gateway_url,
        "dlp": daemon.current.snapshot.config.dlp.mode,
        "stores": daemon.current.snapshot.config.llm_storage.store_bodies,
        "workers": [{"pid": pid} for pid in running],
        "counters": pool.counters(),
        "providers": {
            p.name: {"dialect": p.dialect, "base_url": _base_url(p, daemon.current)}
            for p in config.providers.values()
        },
        "direct": _direct(daemon.current),
        "trouble": f"{missing} of {pool.size} workers are not running" if missing > 0 else "",
        "remedy": "they are restarted with growing patience; see the log" if missing > 0 else "",
    }


def _base_url(provider: Provider, current: Current) -> str:
    """Return where a provider is; a path that came from the environment or a file may hold a secret."""
    if f"proxy.providers.{provider.name}.base_url" not in current.loaded.referred:
        return provider.base_url
    parts = urlsplit(provider.base_url)
    return f"{parts.scheme}://{parts.netloc}{'/...' if parts.path.strip('/') else ''}"


def _direct(current: Current) -> list[dict[str, Any]]:
    """Return the providers that agents shall not talk to directly, and where they are."""
    config = current.snapshot.config
    hosts = llm_plan.watched(config)
    keys = {name: llm_plan.key(name) for name in config.proxy.providers}
    return [
        {"provider": name, "host": hosts[key], "refused": llm_plan.refuses(config)}
        | {"addresses": [str(a) for a in current.addresses.get(key, ())]}
        for name, key in keys.items()
        if key in hosts
    ]


def _servers(daemon: Daemon) -> list[dict[str, Any]]:
    current = daemon.current
    rows = []
    for server in current.snapshot.registry.servers:
        verdict = current.snapshot.judge_server(server.id)
        rows.append(
            {
                "server_id": server.id,
                "type": server.transport,
                "host": server.host,
                "port": server.port or None,
                "source": server.source,
                "addresses": [str(address) for address in current.addresses.get(server.id, ())],
                "action": verdict.action,
                "would": verdict.would,
                "denied": verdict.denied,
                "reason": verdict.reason,
                "rule": verdict.rule,
                "tools": len(current.snapshot.registry.tools_of(server.id)),
                "discovery": daemon.reports.last.get(server.id),
            }
        )
    return rows


async def _reload(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG001 - see Call
    return await daemon.reloading.now()


async def _stop(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG001 - see Call
    # After the answer is on its way: the client must hear that it was heard.
    asyncio.get_running_loop().call_later(0.05, daemon.stop)
    return {"stopping": True}


async def _explain(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG001 - see Call
    call = ToolCall(
        _text(args, "tool"), server_name=_text(args, "server", default=""), input=args.get("args")
    )
    return asdict(explain(daemon.current.snapshot, call))


async def _query(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG001 - see Call
    filters = args.get("filters") or {}
    if not isinstance(filters, Mapping):
        raise ProtocolError("filters is an object")
    path = Path(daemon.writer.status().path)
    page = await asyncio.to_thread(queries.page, path, _text(args, "kind"), filters)
    return page.to_json()


async def _story(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any] | None:  # noqa: ARG001 - see Call
    path = Path(daemon.writer.status().path)
    found = await asyncio.to_thread(stories.find, path, _text(args, "call"))
    return found.to_json() if found else None


async def _show_request(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any]:
    """Return a stored request and its answer: to root and to the daemon's own user, not to the group that may ask the rest."""
    if peer.uid not in {0, os.geteuid()}:
        raise ControlError("bodies are for root only", kind="denied", remedy="ask as root")
    bodies = Bodies(folder_beside(Path(daemon.writer.status().path)))
    return await asyncio.to_thread(bodies.shown, _text(args, "id"), MAX_SHOWN)


async def _new_session(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any]:  # noqa: ARG001 - see Call
    async with daemon.current.lock:
        return await daemon.agents.open(_text(args, "session_id", default=""), daemon.proxy_url)


async def _exec(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> dict[str, Any]:
    async with daemon.current.lock:
        return await daemon.agents.start(_text(args, "session_id", default=""), peer, daemon.proxy_url)


async def _sessions(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> list[Mapping[str, Any]]:  # noqa: ARG001 - see Call
    return daemon.agents.describe()


async def _trust(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> list[dict[str, Any]]:
    current = daemon.current
    async with current.lock:
        chosen = [] if args.get("identity") else _tools(current, args)
        wanted = _text(args, "hash", default="")
        if wanted and (len(chosen) != 1 or not _same_hash(chosen[0].hash, wanted)):
            offered = ", ".join(tool.hash for tool in chosen) or "nothing"
            raise ControlError(
                f"the server offers {offered} by now",
                kind="denied",
                remedy="look again: agentsh-net mcp pins diff",
            )
        now, by = now_rfc3339(), f"uid {peer.uid}"
        pins = [trust(tool, now) for tool in chosen]
        unseen = _unseen(current, args) if pins and not wanted else []
        identities = [identity.trusted(i, now) for i in (*_identities(current, args), *unseen) if i.offered]
        rows = [
            *records.save_pins([inventory.pin_record(pin, by=by) for pin in pins]),
            *records.save_identities(identities, by=by),
        ]
        await current.change_pins(current.snapshot.pins.with_pins(pins).with_identities(identities), rows)
        return [
            *(
                {"server_id": p.server_id, "tool_name": p.tool, "kind": "tool", "tool_hash": p.hash}
                for p in pins
            ),
            *(_shown(i, tool_hash=identity.mark(i.aspect, i.pinned)) for i in identities),
        ]


def _same_hash(whole: str, given: str) -> bool:
    """Compare hashes; an abbreviation of 12 digits or more, as tables show them, will do."""
    digits, wanted = whole.removeprefix("sha256:"), given.removeprefix("sha256:")
    return digits == wanted or (len(wanted) >= 12 and digits.startswith(wanted))


async def _reset(daemon: Daemon, args: Mapping[str, Any], peer: Peer) -> list[dict[str, Any]]:  # noqa: ARG001 - see Call
    current = daemon.current
    async with current.lock:
        board, server, tool = (
            current.snapshot.pins,
            fold(_text(args, "server")),
            _text(args, "tool", default=""),
        )
        chosen = [
            pin
            for pin in board.entries.values()
            if not args.get("identity") and fold(pin.server_id) == server and (not tool or pin.tool == tool)
        ]
        for pin in chosen:
            board = board.without(pin.server_id, pin.tool)
        identities = [identity.forgotten(i) for i in _identities(current, args) if i.pinned]
        rows = [
            *records.delete_pins([(p.server_id, p.tool) for p in chosen]),
            *records.save_identities(identities, by=""),
        ]
        await current.change_pins(board.with_identities(identities), rows)
        return [
            *({"server_id": p.server_id, "tool_name": p.tool, "kind": "tool"} for p in chosen),
            *map(_shown, identities),
        ]


def _identities(current: Current, args: Mapping[str, Any]) -> list[Identity]:
    """Return what a request about pins means of the server itself: nothing where it names a tool, nor what the file declares."""
    if _text(args, "tool", default=""):
        return []
    known = current.snapshot.pins.identities_of(_text(args, "server"))
    return [i for i in known if not (i.declared or identity.silent(i))]


def _unseen(current: Current, args: Mapping[str, Any]) -> list[Identity]:
    """Return what nobody trusted yet about the server of a tool: who trusts the tool means to call it there, so trusts that too."""
    if not _text(args, "tool", default=""):
        return []
    known = current.snapshot.pins.identities_of(_text(args, "server"))
    return [i for i in known if i.state is PinState.NEW and not i.declared]


def _shown(one: Identity, **more: Any) -> dict[str, Any]:
    return {"server_id": one.server_id, "tool_name": "", "kind": one.aspect.value, **more}


def _tools(current: Current, args: Mapping[str, Any]) -> list[Tool]:
    server, name = _text(args, "server"), _text(args, "tool", default="")
    return [t for t in current.snapshot.registry.tools_of(server) if not name or t.name == name]


def _text(args: Mapping[str, Any], name: str, *, default: str | None = None) -> str:
    value = args.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, str):
        raise ProtocolError(f"{name} is text")
    return value


_CALLS: Final[Mapping[str, Call]] = {
    "status": _status,
    "reload": _reload,
    "stop": _stop,
    "explain": _explain,
    "query": _query,
    "llm.show": _show_request,
    "story": _story,
    "session.new": _new_session,
    "session.exec": _exec,
    "session.list": _sessions,
    "pins.trust": _trust,
    "pins.reset": _reset,
}
