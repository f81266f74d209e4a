"""The operator's word on pins: what a server offers now is trusted, or what was trusted forgotten, in force and on the disk.

What a pin is, and what a change of it does, is core's business.
"""

from __future__ import annotations

from typing import Any

from agentsh_net.clock import now_rfc3339
from agentsh_net.control.errors import ControlError
from agentsh_net.control.request import Request
from agentsh_net.core.mcp.judging import meant
from agentsh_net.core.model import PinState, Tool
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.trust import identity
from agentsh_net.core.trust import pins as core_pins
from agentsh_net.core.trust.identity import Identity
from agentsh_net.core.trust.pins import Pin
from agentsh_net.current import Current
from agentsh_net.servers import inventory
from agentsh_net.store import records


async def trust(current: Current, request: Request) -> list[dict[str, Any]]:
    """Trust what a server offers now: the tools that are meant, and the server itself. Raises ControlError for another version."""
    async with current.lock:
        chosen = [] if request.args.get("identity") else _tools(current, request)
        wanted = request.text("hash", "")
        if wanted and (len(chosen) != 1 or not _same_hash(chosen[0].hash, wanted)):
            offered = ", ".join(tool.hash for tool in chosen) or "nothing"
            raise ControlError(
                f"the server offers {offered} by now",
                kind="denied",
                remedy="look again: agentsh-net mcp pins diff",
            )
        now, by = now_rfc3339(), f"uid {request.peer.uid}"
        pins = [core_pins.trust(tool, now) for tool in chosen]
        unseen = _unseen(current, request) if pins and not wanted else []
        identities = [
            identity.trusted(i, now) for i in (*_identities(current, request), *unseen) if i.offered
        ]
        rows = [
            *records.save_pins([inventory.pin_record(pin, by=by) for pin in pins]),
            *records.save_identities(identities, by=by),
        ]
        await current.change_pins(current.snapshot.pins.with_pins(pins).with_identities(identities), rows)
        return [
            *(
                {"server_id": p.server_id, "tool_name": p.tool, "kind": "tool", "tool_hash": p.hash}
                | {"blocked": _blocked(current, p)}
                for p in pins
            ),
            *(_shown(i, tool_hash=identity.mark(i.aspect, i.pinned)) for i in identities),
        ]


def _blocked(current: Current, pin: Pin) -> str:
    """Say why calls of a trusted tool are blocked all the same; empty where they are not."""
    verdict = current.snapshot.explain(meant(pin.server_id, pin.tool)).verdict
    return verdict.reason if verdict.blocked else ""


def _same_hash(whole: str, given: str) -> bool:
    """Compare hashes; an abbreviation of 12 digits or more, as tables show them, will do."""
    digits, wanted = whole.removeprefix("sha256:"), given.removeprefix("sha256:")
    return digits == wanted or (len(wanted) >= 12 and digits.startswith(wanted))


async def reset(current: Current, request: Request) -> list[dict[str, Any]]:
    """Forget what was trusted."""
    async with current.lock:
        board = current.snapshot.pins
        server, tool = fold(request.text("server")), request.text("tool", "")
        chosen = [
            pin
            for pin in board.entries.values()
            if not request.args.get("identity")
            and fold(pin.server_id) == server
            and (not tool or pin.tool == tool)
        ]
        for pin in chosen:
            board = board.without(pin.server_id, pin.tool)
        identities = [identity.forgotten(i) for i in _identities(current, request) if i.pinned]
        rows = [
            *records.delete_pins([(p.server_id, p.tool) for p in chosen]),
            *records.save_identities(identities, by=""),
        ]
        await current.change_pins(board.with_identities(identities), rows)
        return [
            *({"server_id": p.server_id, "tool_name": p.tool, "kind": "tool"} for p in chosen),
            *map(_shown, identities),
        ]


def _identities(current: Current, request: Request) -> list[Identity]:
    """Return what a request about pins means of the server itself: nothing where it names a tool, nor what the file declares."""
    if request.text("tool", ""):
        return []
    known = current.snapshot.pins.identities_of(request.text("server"))
    return [i for i in known if not (i.declared or identity.silent(i))]


def _unseen(current: Current, request: Request) -> list[Identity]:
    """Return what nobody trusted yet about the server of a tool: who trusts the tool means to call it there, so trusts that too."""
    if not request.text("tool", ""):
        return []
    known = current.snapshot.pins.identities_of(request.text("server"))
    return [
        i for i in known if i.state is PinState.NEW and not i.declared and i.aspect not in identity.LISTED
    ]


def _shown(one: Identity, **more: Any) -> dict[str, Any]:
    return {"server_id": one.server_id, "tool_name": "", "kind": one.aspect.value, **more}


def _tools(current: Current, request: Request) -> list[Tool]:
    server, name = request.text("server"), request.text("tool", "")
    return [t for t in current.snapshot.registry.tools_of(server) if not name or t.name == name]
