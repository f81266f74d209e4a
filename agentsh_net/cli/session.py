"""`session`: an agent's own session at the proxy, named by a token that cannot be guessed."""

from __future__ import annotations

import re
import shlex

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.lazy import LazyGroup
from agentsh_net.cli.main import Daemon
from agentsh_net.cli.output import Column, Format, json_text, show
from agentsh_net.cli.source import formatted
from agentsh_net.core.naming.folding import visible

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@click.group(cls=LazyGroup)
def session() -> None:
    """Sessions of agents."""


@session.command(
    short_help="Open a session and print the variables for its agent.",
    epilog=examples('eval "$(agentsh-net session new)"', "agentsh-net session new --id nightly --json"),
)
@click.option("--id", "session_id", help="The session's name in events; without one it is made.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def new(daemon: Daemon, session_id: str | None, as_json: bool) -> None:
    """Open a session and print the variables for its agent: eval "$(agentsh-net session new)"."""
    told = daemon.client().call("session.new", session_id=session_id)
    if as_json:
        click.echo(json_text(told))
        return
    if not any(name.endswith("_BASE_URL") for name in told["env"]):
        seen = (
            "under the shim or behind the gateway"
            if "AGENTSH_NET_MCP_URL" in told["env"]
            else "under the shim"
        )
        click.echo(
            f"the LLM proxy is off: all that is told of this session is calls of MCP servers {seen}", err=True
        )
    for name, value in told["env"].items():
        if not _NAME.fullmatch(name):
            raise Failure(f"the daemon sent {name!r} as the name of a variable", code=Exit.DENIED)
        click.echo(f"export {name}={shlex.quote(value)}")


@session.command("list", epilog=examples("agentsh-net session list --json"))
@formatted
@click.pass_obj
def list_sessions(daemon: Daemon, form: Format) -> None:
    """List the sessions there are."""
    columns = (
        Column("SESSION", lambda row: str(row.get("session_id"))),
        Column("AGENT", lambda row: "runs" if row.get("running") else "-"),
    )
    show(daemon.client().call("session.list"), form, columns, empty="no sessions found")


@session.command(
    short_help="End a session: its token is void.",
    epilog=examples("agentsh-net session end nightly"),
)
@click.argument("session_id", metavar="ID")
@click.pass_obj
def end(daemon: Daemon, session_id: str) -> None:
    """End the session ID: its token is void. One that `exec` put into a cgroup ends with its agent, by itself."""
    daemon.client().call("session.end", session_id=session_id)
    click.echo(f"session {visible(session_id)} has ended: its token is void")
