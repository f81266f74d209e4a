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
from typing import Any, Final

from agentsh_net import status
from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import Peer
from agentsh_net.control.request import Request
from agentsh_net.control.server import Handler
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import ToolCall
from agentsh_net.core.snapshot import explain
from agentsh_net.daemon_state import DaemonState
from agentsh_net.servers import pinning
from agentsh_net.store import queries, stories
from agentsh_net.store.bodies import MAX_SHOWN, Bodies, folder_beside

Call = Callable[[DaemonState, Request], Awaitable[Any]]


def handlers(daemon: DaemonState) -> Mapping[str, Handler]:
    """Return the calls there are, by name."""
    return {name: partial(_when_ready, call, daemon) for name, call in _CALLS.items()}


async def _when_ready(call: Call, daemon: DaemonState, args: Mapping[str, Any], peer: Peer) -> Any:
    if not daemon.ready and call is not _stop:
        raise ControlError("the daemon is starting", kind="busy", remedy="try again in a moment")
    return await call(daemon, Request(args, peer))


async def _stop(daemon: DaemonState, request: Request) -> dict[str, Any]:
    stop = partial(daemon.stop, remove=request.args.get("remove") is True)
    # After the answer is on its way: the client must hear that it was heard.
    asyncio.get_running_loop().call_later(0.05, stop)
    return {"stopping": True}


async def _explain(daemon: DaemonState, request: Request) -> dict[str, Any]:
    call = ToolCall(
        request.text("tool"), server_name=request.text("server", ""), input=request.args.get("args")
    )
    return asdict(explain(daemon.current.snapshot, call))


async def _query(daemon: DaemonState, request: Request) -> dict[str, Any]:
    filters = request.args.get("filters") or {}
    if not isinstance(filters, Mapping):
        raise ProtocolError("filters is an object")
    path = Path(daemon.writer.status().path)
    page = await asyncio.to_thread(queries.page, path, request.text("kind"), filters)
    return page.to_json()


async def _story(daemon: DaemonState, request: Request) -> dict[str, Any] | None:
    path = Path(daemon.writer.status().path)
    found = await asyncio.to_thread(stories.find, path, request.text("call"))
    return found.to_json() if found else None


async def _show_request(daemon: DaemonState, request: Request) -> dict[str, Any]:
    """Return a stored request and its answer: to root and to the daemon's own user, not to the group that may ask the rest."""
    if request.peer.uid not in {0, os.geteuid()}:
        raise ControlError("bodies are for root only", kind="denied", remedy="ask as root")
    bodies = Bodies(folder_beside(Path(daemon.writer.status().path)))
    return await asyncio.to_thread(bodies.shown, request.text("id"), MAX_SHOWN)


async def _reload(daemon: DaemonState, _: Request) -> dict[str, Any]:
    """Answer when the file is in force, and it is known what the servers that it declares offer by now."""
    told = await daemon.reloading.now()
    await daemon.hear_servers(anew=True)
    return told


async def _new_session(daemon: DaemonState, request: Request) -> dict[str, Any]:
    async with daemon.current.lock:
        return await daemon.agents.open(request.text("session_id", ""), daemon.proxy_url)


async def _exec(daemon: DaemonState, request: Request) -> dict[str, Any]:
    async with daemon.current.lock:
        return await daemon.agents.start(request.text("session_id", ""), request.peer, daemon.proxy_url)


async def _end_session(daemon: DaemonState, request: Request) -> dict[str, Any]:
    async with daemon.current.lock:
        await daemon.agents.void(request.text("session_id"))
    return {"session_id": request.text("session_id")}


async def _sessions(daemon: DaemonState, _: Request) -> list[Mapping[str, Any]]:
    return daemon.agents.describe()


_CALLS: Final[Mapping[str, Call]] = {
    "status": lambda daemon, _: status.told(daemon),
    "reload": _reload,
    "stop": _stop,
    "explain": _explain,
    "query": _query,
    "llm.show": _show_request,
    "story": _story,
    "session.new": _new_session,
    "session.exec": _exec,
    "session.end": _end_session,
    "session.list": _sessions,
    "pins.trust": lambda daemon, request: pinning.trust(daemon.current, request),
    "pins.reset": lambda daemon, request: pinning.reset(daemon.current, request),
}
