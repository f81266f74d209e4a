"""`tail`: events as they happen, a line each, until interrupted."""

from __future__ import annotations

from typing import Any

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.main import Daemon
from agentsh_net.cli.output import Row, decision, json_text, moment, session
from agentsh_net.core.naming.folding import visible


@click.command(
    epilog=examples("agentsh-net tail --action block", "agentsh-net tail --type 'mcp_tool_*' --jsonl")
)
@click.option("--session", help="Only this session.")
@click.option("--server", help="Only this server (* stands for anything).")
@click.option("--tool", help="Only this tool (* stands for anything).")
@click.option("--type", help="Only events of this type (* stands for anything).")
@click.option("--action", type=click.Choice(["allow", "block"]), help="Only what was allowed or blocked.")
@click.option("--jsonl", "as_jsonl", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def tail(daemon: Daemon, /, as_jsonl: bool, **filters: Any) -> None:
    """Follow events as they happen, until Ctrl-C."""
    wanted = {name: value for name, value in filters.items() if value is not None}
    for event in daemon.client().stream("tail", **wanted):
        click.echo(json_text(event) if as_jsonl else line(event))


def line(event: Row) -> str:
    """Return an event as one line of text."""
    from agentsh_net.cli.mcp import detail

    who = str(event.get("server_id") or "-")
    of = f"  session {session(event)}" if session(event) else ""
    return visible(
        f"{moment(event.get('timestamp'))}  {decision(event):<11}  {event.get('type')}{of}  {who}  {detail(event)}"
    )
