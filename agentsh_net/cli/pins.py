"""`mcp pins`: which version of each tool is trusted, what changed, and the operator's word on it.

Reading goes through the store like every other reading command; trust is the daemon's to give, so that it is in force at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import wraps
from itertools import chain, islice
from typing import Any, NamedTuple, cast

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit
from agentsh_net.cli.lazy import LazyGroup
from agentsh_net.cli.main import Daemon
from agentsh_net.cli.output import Column, Format, Row, moment, short_hash, show
from agentsh_net.cli.source import EVERY, Command, Source, formatted, reading
from agentsh_net.core.naming.folding import visible


def pinned_name(row: Row) -> str:
    """Return the tool that a pin is of, or which aspect of the server itself: `(tls)`, `(prompts)`, ..."""
    kind = str(row.get("aspect") or row.get("kind") or "tool")
    return str(row["tool_name"]) if kind == "tool" else f"({kind})"


_SERVER = Column("SERVER", lambda row: str(row["server_id"]))
_TOOL = Column("TOOL", pinned_name, fold=True)


class _Of(NamedTuple):
    """Whose pins are meant: a server's and its tools', one tool's, or the server's own."""

    server: str
    tool: str | None
    identity: bool

    def told(self) -> dict[str, Any]:
        """Return it as the daemon is told."""
        only = {"identity": True} if self.identity else {}
        return {"server": self.server, "tool": self.tool, **only}


def _of_a_server(command: Command) -> Command:
    """Give a command --server, --tool and --identity; it gets `of`."""

    @click.option("--server", required=True, help="The server's id.")
    @click.option("--tool", help="The tool; without it every tool of the server, and the server itself.")
    @click.option(
        "--identity",
        is_flag=True,
        help="Only the server itself (certificate, binary, instructions, prompts, resources), none of its tools.",
    )
    @wraps(command)
    def with_subject(*args: Any, server: str, tool: str | None, identity: bool, **kwargs: Any) -> Any:
        if tool and identity:
            raise click.UsageError("--tool and --identity exclude each other")
        return command(*args, of=_Of(server, tool, identity), **kwargs)

    return cast("Command", with_subject)


@click.group(cls=LazyGroup, short_help="Trusted versions of tools and servers, and what changed.")
def pins() -> None:
    """Trusted versions of tools, and what servers themselves are: certificate, binary, instructions, prompts, resources."""


@pins.command(
    "list",
    short_help="List every pin, and whether it still holds.",
    epilog=examples("agentsh-net mcp pins list --server weather"),
)
@reading("server", "tool", limit=EVERY)
def list_pins(source: Source, filters: Mapping[str, Any], form: Format) -> None:
    """List every pin, and whether the tool (or the server itself) is still what was trusted."""
    columns = (
        _SERVER,
        _TOOL,
        Column("STATE", lambda row: str(row["state"])),
        Column("PINNED", lambda row: short_hash(row["pinned_hash"])),
        Column("OFFERED", lambda row: short_hash(row["tool_hash"])),
        Column("TRUSTED (UTC)", lambda row: moment(row["trusted_at"])),
        Column("BY", lambda row: str(row["trusted_by"] or "-")),
    )
    show(source.rows("pins", filters), form, columns, empty=f"no pins found{source.place}")


@pins.command(
    short_help="Show what changed since it was trusted.",
    epilog=examples(
        "agentsh-net mcp pins diff", "agentsh-net mcp pins diff --server weather --tool get_city --json"
    ),
)
@reading("server", "tool", limit=EVERY)
def diff(source: Source, filters: Mapping[str, Any], form: Format) -> None:
    """Show what changed between the trusted definition and the one offered now, field by field."""
    columns = (
        _SERVER,
        _TOOL,
        Column("HASH", lambda row: short_hash(row["tool_hash"])),
        Column("FIELD", lambda row: str(row["path"]), fold=True),
        Column("TRUSTED", lambda row: str(row["old"]), fold=True),
        Column("OFFERED", lambda row: str(row["new"]), fold=True),
    )
    pins = source.rows("pins", {**filters, "limit": EVERY})  # the limit is one of differences
    first = next(pins, None)
    compared = chain(() if first is None else (first,), pins)
    empty = f"no pins found{source.place}" if first is None else "nothing changed"
    show(islice(_differences(compared), filters["limit"]), form, columns, empty=empty)


@pins.command(
    epilog=examples(
        "agentsh-net mcp pins trust --server weather --tool get_city",
        "agentsh-net mcp pins trust --server weather --identity",
    )
)
@_of_a_server
@click.option("--hash", "tool_hash", help="Only if the tool is this version (see `pins diff --json`), so that nothing can change between look and trust.")  # fmt: skip
@formatted
@click.pass_context
def trust(ctx: click.Context, of: _Of, tool_hash: str | None, form: Format) -> None:
    """Trust the version that a server offers now. Exit code 1 if it offers no such thing."""
    daemon: Daemon = ctx.obj
    if tool_hash and not of.tool:
        raise click.UsageError("--hash wants --tool: a hash is of one tool")
    trusted = daemon.client().call("pins.trust", hash=tool_hash, **of.told())
    columns = (_SERVER, _TOOL, Column("TRUSTED", lambda row: short_hash(row.get("tool_hash"))))
    what = f"no tool {of.tool!r}" if of.tool else "nothing"
    show(
        trusted,
        form,
        columns,
        empty=f"nothing to trust: server {of.server!r} offers {what} (see: agentsh-net mcp tools)",
    )
    for row in trusted:
        if why := row.get("blocked"):
            tool = f"{row['server_id']}/{row['tool_name']}"
            click.echo(visible(f"note: {tool} is trusted, and blocked all the same: {why}"), err=True)
    if not trusted:
        ctx.exit(Exit.DENIED)


@pins.command(epilog=examples("agentsh-net mcp pins reset --server weather --tool get_city"))
@_of_a_server
@formatted
@click.pass_obj
def reset(daemon: Daemon, of: _Of, form: Format) -> None:
    """Forget a pin: the tool counts as never seen."""
    forgotten = daemon.client().call("pins.reset", **of.told())
    what = f"{of.server}/{of.tool}" if of.tool else f"server {of.server!r}"
    show(forgotten, form, (_SERVER, _TOOL), empty=f"nothing to forget: there is no pin of {what}")


def _differences(rows: Iterator[Row]) -> Iterator[Row]:
    """Yield a row for each field in which a pinned definition and the offered one differ."""
    from agentsh_net.core.trust import pins as core_pins

    for row in rows:
        if row["offered"] is None or row["pinned_hash"] == row["tool_hash"]:
            continue
        if row["kind"] != "tool" and row["state"] == "trusted":
            continue  # a certificate renewed for the same key, a binary moved elsewhere
        shown = ("server_id", "tool_name", "state", "pinned_hash", "tool_hash")
        names = {name: row[name] for name in shown} | {"aspect": row["kind"]}
        for difference in core_pins.diff(row["pinned"], row["offered"]):
            yield {**names, **difference.to_json()}
