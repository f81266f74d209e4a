"""`mcp calls --show ID`: one call through every layer that saw it, with times, reasons and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import click

from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.output import Format, Row, decision, json_text, shown
from agentsh_net.cli.source import Source
from agentsh_net.core.naming.folding import visible

_STAGES = (("executions", "execution"), ("connections", "connection"), ("results", "result"), ("session", "session"))  # fmt: skip


def show_story(source: Source, call: str, form: Format) -> None:
    """Print the story of a call; exit code 1 where there is none."""
    told = source.story(call)
    if told is None:
        remedy = "ids are those of `agentsh-net mcp calls --json` (id or tool_call_id)"
        raise Failure(f"no call has the id {visible(call, 100)!r}", remedy=remedy, code=Exit.USAGE)
    if form is not Format.TABLE:
        click.echo(json_text(told))
        return
    for line in lines(told):
        click.echo(visible(line))


def lines(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a story: a head, an event each, the verdict."""
    steps = [("intent", told["intent"])] if told["intent"] else []
    steps += [(stage, event) for key, stage in _STAGES for event in told[key]]
    steps.sort(key=lambda step: (str(step[1]["timestamp"]), str(step[1]["id"])))
    first = steps[0][1]
    call = told["executions"][0] if told["executions"] else told["intent"]
    yield f"call        {call.get('server_id') or '-'}/{call.get('tool_name')}  session {call.get('session_id')}"
    yield f"input       {shown(call.get('input'))}"
    for stage, event in steps:
        after = _seconds(first, event)
        when = str(event["timestamp"]) if event is first else f"{f'+{after:.6f} s':>27}"
        yield f"{when:<27}  {stage:<10}  {decision(event):<11}  {_what(stage, event)}"
    for stage, why in _missing(told):
        yield f"{'':<27}  {stage:<10}  {'-':<11}  {why}"
    by = f", decided by the {told['decided_by']} layer's event" if told["decided_by"] else ""
    yield f"verdict     {told['verdict']}{by}"


def _what(stage: str, event: Row) -> str:
    match stage:
        case "intent":
            told = f"{event.get('dialect') or 'the model'} wrote {event.get('tool_name')} (id {event.get('tool_call_id') or '-'})"
        case "execution":
            told = f"via {event.get('via')}, pid {event.get('pid') or '-'}, JSON-RPC id {event.get('jsonrpc_id')!r}"
        case "connection":
            process = f"{event.get('comm') or '?'}[{event.get('pid') or '?'}]"
            told = f"{process} -> {event.get('remote_addr')} ({event.get('layer')}; joined by {event.get('joined_by')})"
        case "result":
            told = f"{event.get('content_length')} bytes, {len(event.get('detections') or ())} findings"
        case _:
            related = ", ".join(
                f"{c.get('server_id')}/{c.get('tool_name')}" for c in event.get("related_calls") or ()
            )
            told = f"{event.get('severity')}: after {related or 'nothing'}"
    patterns = ", ".join(sorted({str(d.get("pattern")) for d in event.get("detections") or ()}))
    told += f" [{patterns}]" if patterns else ""
    reason, rule = event.get("reason"), event.get("rule")
    return f"{told}: {reason}{f' ({rule})' if rule else ''}" if reason else told


def _missing(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Say of each layer that has nothing to tell why that may be."""
    if not told["intent"]:
        yield (
            "intent",
            "no model's answer with this call was seen (another way than the LLM proxy, or code of the agent's own)",
        )
    if not told["executions"]:
        yield (
            "execution",
            "not seen at a shim or the gateway"
            + (" (it was blocked before)" if told["verdict"] == "block" else ""),
        )
    if not told["connections"]:
        yield "connection", "none was seen (a stdio server, an open connection, or the network layer is off)"
    if told["executions"] and not told["results"]:
        yield "result", "not inspected (output_inspection is off, or nothing came back)"


def _seconds(first: Row, event: Row) -> float:
    start, end = (datetime.fromisoformat(str(e["timestamp"])) for e in (first, event))
    return (end - start).total_seconds()
