"""`shim` as the command line's help and usage errors know it; what it does, and its quick start, are `cli.shim`'s."""

from __future__ import annotations

import os

import click
from click.core import ParameterSource

from agentsh_net import places
from agentsh_net.cli import shim as quick
from agentsh_net.cli.examples import examples


@click.command(
    short_help="Run a stdio MCP server behind policy.",
    context_settings={"ignore_unknown_options": False},
    epilog=examples(
        "agentsh-net shim --server files -- npx -y @modelcontextprotocol/server-filesystem /srv/data"
    ),
)
@click.option("--server", required=True, help="The server's id in the policy.")
@click.option(
    "--hide-denied", is_flag=True, help="Leave tools out of tools/list whose calls would be blocked."
)
@click.option(
    "--fail-closed/--fail-open",
    "closed",
    default=False,
    help="What happens to calls while no daemon has said what its policy wants. [default: open, and an event says so]",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def shim(ctx: click.Context, server: str, hide_denied: bool, closed: bool, command: tuple[str, ...]) -> None:
    """Run a stdio MCP server behind policy: agentsh-net shim --server ID -- COMMAND...

    The bytes of both sides pass as they are; tool calls are judged by the daemon before the server sees them. Exit
    status and signals are the server's. One that policy denies is not started, or ended while it runs, and whatever is
    asked is refused, until policy allows it again: then the shim ends with 126, to be started anew.
    """
    if not 0 < len(server) <= quick.MAX_ID:
        raise click.BadParameter(f"an id has 1 to {quick.MAX_ID} characters", param_hint="--server")
    named = ctx.find_root().get_parameter_source("socket") is not ParameterSource.DEFAULT
    socket = str(ctx.obj.socket) if named else places.shims_daemon(os.environ)
    ctx.exit(quick.run(quick.options(server, command, socket, hide=hide_denied, closed=closed)))
