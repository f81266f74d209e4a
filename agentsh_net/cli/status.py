"""`status`: what is really in force, layer by layer, as the daemon asked the kernel a moment ago.

Not its business: what could be in force (`doctor`).
"""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.main import Daemon
from agentsh_net.cli.output import Column, Row, decision, json_text, shown, table
from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import KernelError
from agentsh_net.core.naming.folding import visible

_NAME: Final = 8  # columns of what a line is about


@click.command(
    epilog=examples(
        "agentsh-net status", "agentsh-net status --json | jq -r '.layers[] | select(.in_force | not).reason'"
    )
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def status(ctx: click.Context, as_json: bool) -> None:
    """Show what is in force now. Exit code 1 if the configuration asked for more."""
    daemon: Daemon = ctx.obj
    try:
        told = daemon.client().call("status")
    except ControlError as error:
        if error.kind != "unreachable" or not (left := _left()):
            raise
        raise Failure(
            f"{error}, and {left}",
            code=Exit.UNREACHABLE,
            remedy="start it, and it takes that over (sudo agentsh-net run); or remove it: sudo agentsh-net down --force",
        ) from error
    missing = shortfall(told)
    if as_json:
        click.echo(json_text({**told, "shortfall": missing}))
    else:
        for line in report(told):
            click.echo(line)
        for line in missing:
            click.echo(_wrapped(f"NOT IN FORCE: {visible(line)}"))
    if missing:
        ctx.exit(Exit.DENIED)


def _left() -> str:
    """Say what of ours is in the kernel, as far as that can be seen: what a daemon that crashed refused is refused still."""
    from agentsh_net.kernel import leftovers

    try:
        found = leftovers.leftovers()
    except KernelError:
        return ""  # not ours to see: the daemon's absence is told all the same
    # Pins of programs that are detached: of a daemon that was killed while it removed them.
    refuses = any(not what.startswith("pins") for what in found)
    how = "this is in force without it" if refuses else "this is left of it, which refuses nothing"
    return f"{how}: {', '.join(found)}" if found else ""


def shortfall(told: Mapping[str, Any]) -> list[str]:
    """Return what was asked for and is not in force, each with its reason and remedy."""
    missing = [
        _with_remedy(str(layer.get("layer")), layer.get("reason"), layer.get("remedy"))
        for layer in _rows(told, "layers")
        if layer.get("wanted") and not layer.get("in_force")
    ]
    for name in ("proxy", "store"):
        part = told.get(name) or {}
        if part.get("trouble"):
            missing.append(_with_remedy(name, part["trouble"], part.get("remedy")))
    for name, what in (("snoop", "DNS snooping"), ("stub", "DNS stub")):
        part = told.get(name) or {}
        if part.get("wanted") and not part.get("in_force"):
            missing.append(_with_remedy(what, part.get("reason"), part.get("remedy")))
    return [*missing, *_unresolved(told)]


def _unresolved(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the denied servers that no plane can refuse, because no address of their host is known."""
    if not any(layer.get("wanted") for layer in _rows(told, "layers")):
        return
    resolver = told.get("resolver") or {}
    problems = resolver.get("problems") or {}
    heard = {row.get("name") for row in _rows(resolver, "names") if row.get("overheard")} - {*problems}
    for server in _rows(told, "servers"):
        known = server.get("addresses") or server.get("host") in heard
        if server.get("denied") and server.get("host") and not known:
            why = problems.get(server["host"]) or problems.get(server.get("server_id")) or "not resolved yet"
            yield f"server {server.get('server_id')}: denied, but no address of {server['host']} is known: {why}"
    for row in _rows(told.get("proxy") or {}, "direct"):
        if row.get("refused") and not row.get("addresses"):
            why = problems.get(str(row.get("host"))) or "not resolved yet"
            yield f"provider {row.get('provider')}: llm_direct is refuse, but no address of {row.get('host')} is known: {why}"


def report(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the report."""
    for name, text in _facts(told):
        yield _line(name, text)
    yield ""
    yield from _table(_rows(told, "layers"), _LAYERS)
    servers = _rows(told, "servers")
    if servers:
        yield ""
        yield from _table(servers, _SERVERS)
        yield from _unlisted(servers)
    names = _rows(told.get("resolver") or {}, "names")
    if names:
        yield ""
        yield from _table(names, _NAMES)


def _facts(told: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield what each line above the tables says, with its name."""
    policy, proxy = told.get("policy") or {}, told.get("proxy") or {}
    version, pid, started = (told.get(key, "?") for key in ("version", "pid", "started"))
    yield "daemon", f"{version}, pid {pid}, since {started}"
    yield "policy", _policy(policy)
    yield "proxy", _proxy(proxy)
    if (told.get("metrics") or {}).get("listen"):
        yield "metrics", told["metrics"]["listen"]
    if proxy.get("gateway"):
        yield "gateway", f"{proxy['gateway']}/mcp/<server-id>"
    yield "store", _store(told.get("store") or {})
    if (told.get("egress") or {}).get("sessions", "open") != "open":
        yield "egress", _egress(told["egress"])
    if told.get("running"):
        yield "agents", f"in sessions {', '.join(map(str, told['running']))}"
    if (told.get("snoop") or {}).get("in_force"):
        yield "dns", _snooped(told["snoop"])
    if (told.get("stub") or {}).get("in_force"):
        yield "dns", _stub(told["stub"])
    for layer in _rows(told, "layers"):
        if layer.get("attachment"):
            yield str(layer.get("layer")), str(layer["attachment"])
    for note in told.get("notes") or ():
        yield "note", str(note)
    for problem in policy.get("refused") or ():
        yield "refused", f"the file as it is now: {problem}"
    for setting in policy.get("pending") or ():
        yield "pending", f"{setting} waits for the next start"
    for limit in _rows(told, "limits"):
        yield "limit", f"{limit['missing']}: {limit['cost']} (fix: {limit['remedy']})"


def _policy(policy: Mapping[str, Any]) -> str:
    digest = str(policy.get("digest") or "-").removeprefix("sha256:")[:12]
    where = policy.get("path") or "built-in default"
    mode, generation = policy.get("mode", "?"), policy.get("generation", "?")
    return f"{mode}, generation {generation}, digest {digest}, {where}"


def _egress(egress: Mapping[str, Any]) -> str:
    """Say what becomes of sessions' connections, and which allowed names have no address."""
    allow = _rows(egress, "allow")
    does = "is refused" if egress.get("refused") else "is told, and let pass"
    told = f"what sessions connect to and nothing declares {does}; {len(allow)} allowed beside servers"
    unknown = [str(row["host"]) for row in allow if "/" not in str(row["host"]) and not row.get("addresses")]
    return f"{told}, of which no address is known of {', '.join(unknown)}" if unknown else told


def _proxy(proxy: Mapping[str, Any]) -> str:
    if not proxy.get("listen"):
        return "off"
    workers = len(_rows(proxy, "workers"))
    told = f"{proxy['listen']}, {workers} worker{'s' if workers != 1 else ''}"
    told += f", DLP {proxy['dlp']}" if proxy.get("dlp", "disabled") != "disabled" else ""
    return told + (", requests and answers stored" if proxy.get("stores") else "")


def _unlisted(servers: Sequence[Row]) -> Iterator[str]:
    """Yield why what servers offer is not known, or may be another by now."""
    for server in servers:
        told = server.get("discovery") or {}
        if told.get("unlisted"):
            yield visible(f"{server.get('server_id')}: not all it offers can be listed: {told['unlisted']}")
        if told and not told.get("ok"):
            tries = told.get("attempts") or 1
            yield visible(
                f"{server.get('server_id')}: its tools cannot be listed: {told.get('error') or 'no reason given'}"
                f" ({tries} {'try' if tries == 1 else 'tries'}, and it is tried again)"
            )
    waits = [str(s.get("server_id")) for s in servers if _waits(s) and s.get("action") != "block"]
    if waits:
        yield visible(
            f"{', '.join(waits)}: tools are known once a client lists them, under the shim or behind the gateway"
        )


def _waits(server: Row) -> bool:
    """Say whether nobody asked a stdio server for its tools: the daemon itself starts none."""
    return server.get("type") == "stdio" and not server.get("tools")


def _snooped(snoop: Mapping[str, Any]) -> str:
    """Say what came of listening to others' answers: the gap is from an answer's arrival to the planes' confirmation."""
    gap = snoop.get("gap") or {}
    told = f"answers snooped: {snoop.get('seen', 0)} seen, {snoop.get('lost', 0)} lost, {snoop.get('changes', 0)} brought an address"
    return told + (
        f", in force after {gap['p50'] * 1000:.1f} ms (p99 {gap['p99'] * 1000:.1f})"
        if gap.get("count")
        else ""
    )


def _stub(stub: Mapping[str, Any]) -> str:
    """Say where the stub answers, and how to have it asked: nothing is pointed at it by itself."""
    held = stub.get("held") or {}
    port = "" if stub.get("port") == 53 else f" (port {stub.get('port')})"
    told = f"stub asks {', '.join(map(str, stub.get('upstream') or ()))}; used by who has `nameserver {stub.get('listen')}`{port} in resolv.conf"
    if not held.get("count"):
        return told
    return (
        f"{told}; {held['count']} answers held for {held['p50'] * 1000:.1f} ms (p99 {held['p99'] * 1000:.1f})"
    )


def _addresses(row: Row) -> str:
    """Return the addresses of a name; those that only others' answers told of are marked."""
    heard = [f"{address} (overheard)" for address in row.get("overheard") or ()]
    return ", ".join([*map(str, row.get("addresses") or ()), *heard]) or "-"


def _age(row: Row) -> str:
    age = row.get("age")
    if age is None:
        return "never"
    return (
        f"{age:.0f}s ago" if age < 120 else f"{age / 60:.0f}m ago" if age < 7200 else f"{age / 3600:.0f}h ago"
    )


def _tools(row: Row) -> str:
    """Return how many tools a server offers, a question mark where it could not be asked or nobody asked it."""
    if row.get("type") == "stdio":
        return "?" if _waits(row) else str(row["tools"])
    return str(row.get("tools", "-")) if (row.get("discovery") or {}).get("ok") else "?"


def _store(store: Mapping[str, Any]) -> str:
    size = f"{store.get('bytes', 0) / 1e6:.1f} MB"
    return f"{store.get('path', '?')}, {size}, {store.get('queued', 0)} queued, {store.get('lost', 0)} lost"


def _with_remedy(what: str, reason: Any, remedy: Any) -> str:
    told = f"{what}: {reason}" if reason else what
    return f"{told} (fix: {remedy})" if remedy else told


def _wrapped(line: str) -> str:
    """Return a line as lines of the terminal, set off below the first; a pipe gets it whole."""
    width = shutil.get_terminal_size().columns
    if len(line) <= width or not sys.stdout.isatty():
        return line
    below = " " * _NAME
    return textwrap.fill(line, max(width, 3 * _NAME), subsequent_indent=below, break_long_words=False, break_on_hyphens=False)  # fmt: skip


def _line(name: str, text: str) -> str:
    return _wrapped(f"{name:<{_NAME}}{visible(text)}")


def _table(rows: Sequence[Row], columns: Sequence[Column]) -> list[str]:
    return table(rows, columns).splitlines() if rows else []


def _rows(told: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return list(told.get(name) or ())


_LAYERS = (
    Column("LAYER", lambda row: str(row.get("layer"))),
    Column(
        "STATE",
        lambda row: "in force" if row.get("in_force") else "OFF" if row.get("wanted") else "not wanted",
    ),
    Column("DENIED", lambda row: str(row.get("denied", 0))),
    Column("TAGGED", lambda row: str(row.get("tagged", 0))),
    Column("LOST", lambda row: str(row.get("lost", 0))),
    Column("DETAIL", lambda row: shown(row.get("detail") or row.get("reason")), fold=True),
)

_SERVERS = (
    Column("SERVER", lambda row: str(row.get("server_id"))),
    Column("TYPE", lambda row: str(row.get("type") or "-")),
    Column("ACTION", decision),
    Column("TOOLS", _tools),
    Column("ADDRESSES", lambda row: ", ".join(map(str, row.get("addresses") or ())) or "-", fold=True),
)

_NAMES = (
    Column("NAME", lambda row: str(row.get("name"))),
    Column("ANSWERED", _age),
    Column("ADDRESSES", _addresses, fold=True),
    Column(
        "LAST FAILURE",
        lambda row: (
            f"{shown(row['failure'])} ({row.get('failures')} in a row)" if row.get("failure") else "-"
        ),
        fold=True,
    ),
)
