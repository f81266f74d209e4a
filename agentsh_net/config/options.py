"""What `run` was told on the command line, laid over the policy file; and which settings of a new file wait for the next start.

What a file may say is `policy_file`'s and `core.configuration.config`'s business.
"""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from agentsh_net import places
from agentsh_net.config import policy_file
from agentsh_net.config.policy_file import Loaded
from agentsh_net.core.configuration.config import digest, parse
from agentsh_net.core.configuration.settings import Config

# A port, a file or a kernel plane that is open cannot become another one without a gap.
_AT_START: Final[Mapping[str, Callable[[Config], Any]]] = {
    "proxy.mode": lambda c: c.proxy.mode,
    "proxy.listen": lambda c: c.proxy.listen,
    "proxy.port": lambda c: c.proxy.port,
    "proxy.workers": lambda c: c.proxy.workers,
    "gateway.enabled": lambda c: c.gateway.enabled,
    "gateway.listen": lambda c: c.gateway.listen,
    "gateway.port": lambda c: c.gateway.port,
    "network.layers": lambda c: c.network.layers,
    "network.scope": lambda c: c.network.scope,
    "network.required": lambda c: c.network.required,
    "network.nflog_group": lambda c: c.network.nflog_group,
    "network.resolve": lambda c: c.network.resolve,
    "store": lambda c: c.store,
    "metrics": lambda c: c.metrics,
    "control.socket": lambda c: c.control.socket,
    "log": lambda c: c.log,
}


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of `run`. `audit`: True for --audit, False for --enforce, None where the file decides."""

    config: Path | None = None
    audit: bool | None = None
    ready_file: Path | None = None
    socket: Path | None = None  # the control socket, where the command line or the environment names it

    @property
    def source(self) -> str:
        """Where the policy comes from, for people."""
        return str(self.config or "the built-in default")


def load(wanted: Options, environ: Mapping[str, str]) -> Loaded:
    """Read what `run` was told to use. Raises ConfigError."""
    loaded = _default(environ) if wanted.config is None else _file(wanted.config, environ)
    said: dict[str, Any] = {}
    if wanted.audit is not None:
        said["sandbox"] = {"mcp": {"enforce_policy": not wanted.audit}}
    if wanted.socket is not None:
        said["control"] = {"socket": str(wanted.socket)}
    return _with(loaded, said) if said else loaded


def waiting(old: Config, new: Config) -> tuple[str, ...]:
    """Return the settings in which a new configuration differs and which take effect at the next start only."""
    differ = [path for path, get in _AT_START.items() if get(old) != get(new)]
    if old.network.mode == "off" != new.network.mode:
        differ.append("network.mode")
    return tuple(differ)


def home(environ: Mapping[str, str]) -> Path:
    """Return the home of the person who asked: under sudo that is who called it."""
    if os.geteuid() == 0 and (caller := environ.get("SUDO_USER")):
        # A caller that the name service does not know has no home to look into.
        with contextlib.suppress(KeyError):
            return Path(pwd.getpwnam(caller).pw_dir)
    return Path(environ.get("HOME") or "/")


def own_places(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return what a configuration says of the places of a user without privileges; nothing for root, who has the system's."""
    if os.geteuid() == 0:
        return {}
    whose = str(home(environ))
    store, socket = places.own_store(whose, environ), places.own_socket(whose, environ)
    return {"store": {"path": store}, "control": {"socket": socket}}


def _default(environ: Mapping[str, str]) -> Loaded:
    """Return the built-in default for the person who asked."""
    loaded = policy_file.default(environ, home(environ))
    own = own_places(environ)
    return _with(loaded, own) if own else loaded


def _file(path: Path, environ: Mapping[str, str]) -> Loaded:
    """Read a policy file. What it leaves at a place of the system's that this user may not write is in the user's own."""
    loaded = policy_file.load(path, environ)
    config = loaded.config
    # A service's user, say, has been given the system's places.
    closed = {"store": not _writable(config.store.path), "control": not _writable(config.control.socket)}
    own = {
        section: keys
        for section, keys in own_places(environ).items()
        if closed[section] and not keys.keys() & (loaded.mapping.get(section) or {}).keys()
    }
    return _with(loaded, own) if own else loaded


def _writable(path: str) -> bool:
    """Say whether this user could make the file: whether the nearest directory that exists may be written."""
    there = next(parent for parent in Path(path).parents if os.access(parent, os.F_OK))
    return os.access(there, os.W_OK | os.X_OK)


def _with(loaded: Loaded, changes: Mapping[str, Any]) -> Loaded:
    mapping = _merged(loaded.mapping, changes)
    sources = {server.id: server.source for server in loaded.config.sandbox.mcp.servers}
    config = policy_file.sourced(parse(mapping), sources)
    return replace(loaded, mapping=mapping, config=config, digest=digest(mapping))


def _merged(old: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in changes.items():
        inner = merged.get(key)
        merged[key] = (
            _merged(inner if isinstance(inner, Mapping) else {}, value)
            if isinstance(value, Mapping)
            else value
        )
    return merged
