"""`init`: find the MCP servers of this user's clients, write a first policy, and put the servers behind it, or take them out."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.file_name import FILE
from agentsh_net.cli.output import Column, Format, show
from agentsh_net.core.errors import ConfigError
from agentsh_net.core.naming.folding import visible

if TYPE_CHECKING:
    from agentsh_net.mcp_clients.declarations import Found, Place
    from agentsh_net.mcp_clients.installation import Outcome

GATEWAY = "http://127.0.0.1:8485"


@click.command(
    short_help="Write a first policy from the MCP clients' files.",
    epilog=examples(
        "agentsh-net init --out policy.yaml",
        "agentsh-net init --out policy.yaml --install --client cursor",
        "agentsh-net init --uninstall",
    ),
)
@click.option("--out", type=FILE, default="agentsh-net.yaml", show_default=True, help="The policy file to write.")  # fmt: skip
@click.option("--force", is_flag=True, help="Overwrite the policy file.")
@click.option("--install", is_flag=True, help="Also rewrite the clients' files: stdio servers run under the shim, network servers go through the gateway.")  # fmt: skip
@click.option("--uninstall", is_flag=True, help="Only take the servers out again: the clients' files are as they were.")  # fmt: skip
@click.option("--client", "clients", multiple=True, help="Rewrite the files of this client only, e.g. cursor; may be given more than once.")  # fmt: skip
@click.option("--gateway", default=GATEWAY, show_default=True, metavar="URL", help="Where the gateway listens, for network servers.")  # fmt: skip
@click.pass_context
def init(ctx: click.Context, out: Path, force: bool, install: bool, uninstall: bool, clients: tuple[str, ...], gateway: str) -> None:  # fmt: skip
    """Find MCP servers in the files of this user's clients and write a policy for them, in audit mode."""
    if install and uninstall:
        raise click.UsageError("--install and --uninstall exclude each other")
    from agentsh_net.config import options, policy_file
    from agentsh_net.mcp_clients import catalog, declarations

    home = options.home(os.environ)
    found = declarations.find(home, cwd=Path.cwd(), config_home=policy_file.config_home(os.environ, home))
    known = {client.name for client in catalog.CLIENTS}
    if unknown := set(clients) - known:
        raise Failure(
            f"no client is called {min(unknown)}",
            code=Exit.USAGE,
            remedy=f"known are: {', '.join(sorted(known))}",
        )
    places = [place for place in found.places if not clients or place.client in clients]
    if uninstall:
        _uninstall(ctx, places)
        return
    _tell_found(found)
    if install:
        places = _without_logins(_without_open_urls(_without_bound(places)), found)
    through = install and any(place.transport != "stdio" and place.used for place in places)
    if not (install and out.exists() and not force):
        _write_policy(found, out, force=force, port=_port(gateway) if through else None)
    if install:
        _install(ctx, places, gateway if through and _gateway_is_on(out) else "", out)


def _without_bound(places: list[Place]) -> list[Place]:
    """Return the places without servers that an administrator allows as they are declared, and not otherwise; they are told."""
    for place in places:
        if place.bound_in is not None:
            click.echo(f"left as it is: {visible(place.server_id)} ({place.client}) is allowed by its command or URL in {visible(str(place.bound_in))}, which would refuse another", err=True)  # fmt: skip
    return [place for place in places if place.bound_in is None]


def _without_open_urls(places: list[Place]) -> list[Place]:
    """Return the places without servers of whose URL only their client knows all; they are told."""
    for place in places:
        if place.open_url:
            click.echo(f"left as it is: {visible(place.server_id)} ({place.client}) has a URL that its client fills in", err=True)  # fmt: skip
    return [place for place in places if not place.open_url]


def _without_logins(places: list[Place], found: Found) -> list[Place]:
    """Return the places without servers that want a login of their own, which cannot go through the gateway; they are told."""
    import asyncio

    from agentsh_proxy.mcp_client.login import logins

    from agentsh_net.core.configuration.config import parse

    chosen = {place.server_id for place in places if place.used and place.transport != "stdio"}
    plain = [
        s.declaration
        for s in found.servers
        if s.declaration["id"] in chosen and not s.declaration.get("headers") and not s.fills
    ]
    servers = parse({"sandbox": {"mcp": {"servers": plain}}}).sandbox.mcp.servers if plain else ()
    wanted = asyncio.run(logins(servers))
    for place in places:
        if place.server_id in wanted:
            click.echo(f"left as it is: {visible(place.server_id)} ({place.client}) wants a login of its own (OAuth), whose tokens are bound to its own URL", err=True)  # fmt: skip
    return [place for place in places if place.server_id not in wanted]


def _tell_found(found: Found) -> None:
    columns = (
        Column("SERVER", lambda row: str(row["id"])),
        Column("TYPE", lambda row: str(row["type"])),
        Column("CLIENT", lambda row: str(row["client"])),
        Column("FILE", lambda row: str(row["file"]), fold=True),
    )
    rows = [{**s.declaration, "client": s.client, "file": s.source} for s in found.servers]
    show(rows, Format.TABLE, columns, empty="no MCP servers found in the files of this user's clients")
    for unread in found.unread:
        click.echo(f"left out: {unread}", err=True)
    for place in found.places:
        if place.off_in is not None:
            click.echo(f"left out: {visible(place.server_id)} ({place.client}) is switched off in {visible(str(place.off_in))}; run init again when it is used", err=True)  # fmt: skip


def _write_policy(found: Found, out: Path, *, force: bool, port: int | None) -> None:
    """Write the policy where the daemon takes it, and nowhere else. It may hold credentials: mode 0600."""
    from agentsh_net.config import first_policy, policy_file

    if out.is_dir():
        raise Failure(f"{out} is a directory", code=Exit.USAGE, remedy="name a file with --out")
    if out.exists() and not force:
        raise Failure(
            f"{out} exists",
            code=Exit.USAGE,
            remedy="name another file with --out, or overwrite it with --force",
        )
    scratch = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(first_policy.text(found.servers, gateway_port=port))
        policy_file.load(scratch, os.environ)
        scratch.rename(out)
    except ConfigError as error:
        scratch.unlink(missing_ok=True)
        raise Failure(
            f"the policy of these servers is refused, which is a bug: {error}", code=Exit.DENIED
        ) from None
    except OSError as error:
        scratch.unlink(missing_ok=True)
        raise Failure(
            f"cannot write {out}: {error.strerror}",
            code=Exit.ENVIRONMENT,
            remedy="name another file with --out",
        ) from None
    counted = f"{len(found.servers)} server{'s' if len(found.servers) != 1 else ''}"
    click.echo(f"wrote {out}: audit mode, {counted}. Next: sudo agentsh-net run --config {out}")


def _port(gateway: str) -> int:
    """Return the port of the gateway's URL."""
    from agentsh_net.core.web import urls

    try:
        return urls.parse(gateway).port
    except urls.UrlError as error:
        raise Failure(f"--gateway: found {error.found}", code=Exit.USAGE, remedy=f"give {GATEWAY}") from None


def _gateway_is_on(policy: Path) -> bool:
    """Say whether a policy has the gateway on: clients must not be sent where nobody listens."""
    from agentsh_net.config import policy_file

    try:
        return policy_file.load(policy, os.environ).config.gateway.enabled
    except ConfigError:
        return False  # `policy check` says why


def _install(ctx: click.Context, places: list[Place], gateway: str, policy: Path) -> None:
    from agentsh_net.mcp_clients import installation

    why = f"gateway.enabled is not set in {visible(str(policy))} (set it, or have the file written anew: --force)"
    for place in places:
        if place.transport != "stdio" and place.used and not gateway:
            click.echo(f"left as it is: {visible(place.server_id)} is a network server ({place.client}): {why}", err=True)  # fmt: skip
    outcomes = installation.install(places, _program(ctx), gateway)
    for outcome in outcomes:
        if outcome.servers:
            click.echo(f"{visible(str(outcome.file))}: behind policy: {_names(outcome.servers)}; as it was: {outcome.backup}")  # fmt: skip
        elif not outcome.trouble:
            click.echo(f"{visible(str(outcome.file))}: nothing to do")
    _finish(ctx, outcomes)


def _uninstall(ctx: click.Context, places: list[Place]) -> None:
    from agentsh_net.mcp_clients import installation

    outcomes = installation.uninstall(places)
    for outcome in outcomes:
        if outcome.servers:
            kept = f"; the copy of before differs and was kept: {outcome.backup}" if outcome.backup else ""
            click.echo(
                f"{visible(str(outcome.file))}: no longer behind policy: {_names(outcome.servers)}{kept}"
            )
    if not outcomes:
        click.echo("no server of this user's clients runs under the shim or behind the gateway")
    _finish(ctx, outcomes)


def _finish(ctx: click.Context, outcomes: Iterable[Outcome]) -> None:
    troubles = [outcome for outcome in outcomes if outcome.trouble]
    for outcome in troubles:
        click.echo(f"not changed{' everywhere' if outcome.servers else ''}: {visible(str(outcome.file))}: {visible(outcome.trouble)}", err=True)  # fmt: skip
    if troubles:
        ctx.exit(Exit.DENIED)


def _program(ctx: click.Context) -> list[str]:
    """Return how clients start this very program: absolute, since clients of a desktop know another PATH."""
    script = Path(sys.argv[0])
    found = (
        str(script.absolute())
        if script.name == "agentsh-net" and script.is_file()
        else shutil.which("agentsh-net")
    )
    program = [found] if found else [sys.executable, "-m", "agentsh_net"]
    root = ctx.find_root()
    if root.get_parameter_source("socket") is ParameterSource.DEFAULT:
        return program
    return [*program, "--socket", str(root.obj.socket.absolute())]


def _names(servers: Iterable[str]) -> str:
    return ", ".join(visible(server) for server in servers)
