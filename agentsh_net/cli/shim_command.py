"""`shim` as the command line's help and usage errors know it; what it does, and its quick start, are `cli.shim`'s."""

from __future__ import annotations

import click

from agentsh_net.cli import shim as quick
from agentsh_net.cli.main import Daemon


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--server", required=True, help="The server's id in the policy.")
@click.option(
    "--hide-denied", is_flag=True, help="Leave tools out of tools/list whose calls would be blocked."
)
@click.option(
    "--fail-closed/--fail-open",
    "closed",
    default=False,
    help="What happens to calls while no daemon has said what its policy wants. [default: open, and told]",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_context
def shim(ctx: click.Context, server: str, hide_denied: bool, closed: bool, command: tuple[str, ...]) -> None:
    """Run a stdio MCP server behind policy: agentsh-net shim --server ID -- COMMAND...

    The bytes of both sides pass as they are; tool calls are judged by the daemon before the server sees them. Exit
    status and signals are the server's.
    """
    daemon: Daemon = ctx.obj
    ctx.exit(quick.run(quick.options(server, command, str(daemon.socket), hide=hide_denied, closed=closed)))
