"""`doctor`: what each layer would need on this machine, whether it is there, and the command that mends it. Changes nothing.

Not its business: what is in force (`status`).
"""

from __future__ import annotations

import os
import platform
import pwd
import socket
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit
from agentsh_net.cli.file_name import FILE
from agentsh_net.cli.main import Daemon
from agentsh_net.cli.output import Column, Format, show, shown
from agentsh_net.cli.source import formatted
from agentsh_net.core.configuration.settings import Config, Gateway, Metrics, Network, Proxy
from agentsh_net.core.errors import ConfigError

ANSWER = 5.0  # seconds that a daemon is waited for: without it there is still much to tell
Check = Mapping[str, Any]  # layer, usable, detail, reason, remedy, wanted


@click.command(
    short_help="Say what each layer needs, and the command that mends it.",
    epilog=examples("sudo agentsh-net doctor", "sudo agentsh-net doctor --config policy.yaml --json"),
)
@click.option("--config", type=FILE, help="Check what this file asks for; without one that of the daemon that runs, or the built-in default.")  # fmt: skip
@formatted
@click.pass_context
def doctor(ctx: click.Context, config: Path | None, form: Format) -> None:
    """Tell of each layer whether it is usable, why not, and the command that mends it. Exit code 3 if a layer asked for is not usable."""
    daemon: Daemon = ctx.obj
    settings, source = (_loaded(config), []) if config is not None else _followed(daemon)
    checks = [
        *_machine(),
        *source,
        *_layers(settings.network),
        _store(Path(settings.store.path)),
        *_ports(settings, daemon),
    ]
    wanted = _wanted(settings.network)
    rows = [{**check, "wanted": check["layer"] in wanted} for check in checks]
    show(rows, form, _COLUMNS)
    if any(row["wanted"] and not row["usable"] for row in rows):
        ctx.exit(Exit.ENVIRONMENT)


def _layers(network: Network) -> Iterator[Check]:
    from agentsh_net.kernel.cgroups import cgroup
    from agentsh_net.kernel.limits import limits
    from agentsh_net.kernel.probe import probe

    if not Path(cgroup.MOUNTINFO).exists():  # nothing can be asked of the kernel's layers
        reason, remedy = "no procfs is mounted at /proc", "mount -t proc proc /proc"
        yield from (_missing(layer, reason, reason, remedy) for layer in network.layers)
        return
    for found in probe(network.bpf_loader):
        if network.scope != "netns" or found.layer != "ebpf":
            yield asdict(found)
    for limit in limits(network):
        yield _missing("limits", limit.missing, f"{limit.missing}: {limit.cost}", limit.remedy)
    if "nftables" in network.layers:
        yield from _log_group(network.nflog_group)


def _log_group(group: int) -> Iterator[Check]:
    from agentsh_net.kernel import leftovers
    from agentsh_net.kernel.nft import nflog

    reader = nflog.reader_of(group)
    if reader is None or reader in leftovers.owners():
        return
    what = (
        f"the log group {group}, which {f'pid {reader}' if reader else 'a process that cannot be seen'} reads"
    )
    cost = f"{what}: what nftables refuses is refused, and not told"
    yield _missing(
        "limits", what, cost, f"end that process, or set network.nflog_group to another than {group}"
    )


def _wanted(network: Network) -> set[str]:
    layers = set(network.layers) if network.mode != "off" else set()
    if network.scope == "netns":
        layers.discard("ebpf")
    elif layers and (
        network.scope == "sessions" or network.llm_direct != "off" or network.egress.sessions != "open"
    ):
        layers.add("cgroups")  # what `exec` needs, and what exempts the proxy
    return {*layers, "store", "proxy", "gateway", "metrics"}


_COLUMNS = (
    Column("LAYER", lambda row: str(row["layer"])),
    Column("STATE", lambda row: "ok" if row["usable"] else "MISSING" if row["wanted"] else "missing"),
    Column("FOUND", lambda row: shown(row["reason"] or row["detail"]), fold=True),
    Column("FIX", lambda row: shown(row["remedy"]), fold=True),
)


def _followed(daemon: Daemon) -> tuple[Config, list[Check]]:
    """Return the settings of the daemon that runs, and where they come from; the built-in default where none does."""
    from agentsh_net.control.errors import ControlError

    try:
        told = daemon.client(timeout=ANSWER).call("status")
    except ControlError:
        return _default(), []
    path, pid = told.get("policy", {}).get("path"), told.get("pid")
    if not path:
        return _default(), []
    try:
        return _loaded(Path(path)), [_ok("policy", f"{path}, which the daemon follows (pid {pid})")]
    except ConfigError as error:
        reason = f"the daemon (pid {pid}) follows {error.problems[0].within(path)}: the built-in default is checked"
        return _default(), [_missing("policy", path, reason, f"sudo agentsh-net doctor --config {path}")]


def _loaded(path: Path) -> Config:
    from agentsh_net.config import options

    return options.load(options.Options(path), os.environ).config


def _default() -> Config:
    """Return what a daemon without a file would use, but for the servers: those are looked for where it is started."""
    from agentsh_net.config import options
    from agentsh_net.core.configuration.config import parse

    return parse({"version": 1, **options.own_places(os.environ)})


def _machine() -> Iterator[Check]:
    yield _ok("python", f"Python {platform.python_version()}")
    yield _ok("user", _user(os.geteuid()))


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:  # containers run as ids that are in no file
        return f"user id {uid}"


def _store(path: Path) -> Check:
    from agentsh_net.core.errors import StoreError
    from agentsh_net.store.connect import disk_bytes, reader

    found = f"{path} will be made"
    if _seen(path):
        try:
            with reader(path):
                found = f"{path}, {disk_bytes(path) / 1e6:.1f} MB"
        except StoreError as error:
            return _missing("store", str(path), str(error), error.remedy)
    parent = next(p for p in path.absolute().parents if _seen(p))
    if os.access(parent, os.W_OK | os.X_OK, effective_ids=True):
        return _ok("store", found)
    return _missing(
        "store", str(path), f"{parent} may not be written", "run as root (sudo), or set store.path"
    )


def _seen(path: Path) -> bool:
    """Say whether something is there that this user can see: a home may be another's (sudo -u keeps HOME)."""
    return os.access(path, os.F_OK, effective_ids=True)


def _ports(settings: Config, daemon: Daemon) -> Iterator[Check]:
    if settings.proxy.mode != "disabled":
        yield _port("proxy", settings.proxy, daemon)
    if settings.gateway.enabled:
        yield _port("gateway", settings.gateway, daemon)
    if settings.metrics.listen:
        yield _port("metrics", settings.metrics, daemon)


def _port(layer: str, asked: Proxy | Gateway | Metrics, daemon: Daemon) -> Check:
    address, port = asked.listen, asked.port
    place = f"{address}:{port}"
    try:
        family, kind, _, _, where = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the daemon does
            probe.bind(where)
    except OSError as error:
        if _runs(daemon):
            return _ok(layer, f"{place} is in use; the daemon runs")
        return _missing(
            layer, place, f"{place}: {error.strerror}", f"set {layer}.port, or see: ss -ltnp sport = :{port}"
        )
    return _ok(layer, f"{place} is free")


def _runs(daemon: Daemon) -> bool:
    from agentsh_net.control.socket_file import holder

    try:
        return holder(daemon.socket) is not None
    except PermissionError:
        return True  # somebody else's lock is there


def _ok(layer: str, detail: str) -> Check:
    return {"layer": layer, "usable": True, "detail": detail, "reason": "", "remedy": ""}


def _missing(layer: str, detail: str, reason: str, remedy: str) -> Check:
    return {"layer": layer, "usable": False, "detail": detail, "reason": reason, "remedy": remedy}
