"""A snapshot as the proxy needs it on the hot path: origins split, dialects looked up, once a reload instead of once a request.

It decides nothing; the snapshot it is made from judges.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from agentsh_net.core.configuration.settings import Provider, ProviderLimits, Proxy
from agentsh_net.core.dialects.base import Dialect, Limits
from agentsh_net.core.dialects.catalog import WIRES
from agentsh_net.core.dlp.guard import Guard
from agentsh_net.core.model import Server
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.offers import Lessons, Teacher
from agentsh_net.core.web.aws_signature import Credentials


class Origin(NamedTuple):
    """Where connections of one pool go."""

    host: str
    port: int
    tls: bool


@dataclass(frozen=True, slots=True)
class ProviderView:
    """A provider, ready to be asked. `dialects` holds its own first: a path that another one reads is read by that one."""

    name: str
    origin: Origin
    host_field: bytes
    base_path: bytes
    dialects: tuple[Dialect, ...]
    aws: Credentials | None = None  # with which the proxy asks
    # It takes requests with the client's own API key only: the proxy has no credentials.
    wants_key: bool = False
    limited: bool = False  # has limits of requests or tokens a minute

    @property
    def dialect(self) -> Dialect:
        """The dialect that errors of this provider are written in."""
        return self.dialects[0]


@dataclass(frozen=True, slots=True)
class View:
    """One snapshot, unfolded."""

    snapshot: Snapshot
    proxy: Proxy
    fail_closed: bool
    enforce: bool
    providers: Mapping[str, ProviderView]
    dialect_names: Mapping[str, str]
    servers: Mapping[str, Server]
    limits: Limits
    guard: Guard | None  # DLP, where it is on
    stores: bool  # requests and bodies are kept
    teacher: Teacher
    hide_denied: bool = False
    lessons: dict[bytes, Lessons] = field(default_factory=dict)  # by the hash of a request's tools
    # Admission's memory of what it decided by this view.
    ways: dict[Hashable, Any] = field(default_factory=dict)

    @property
    def closed(self) -> bool:
        """Say whether what cannot be read is refused: by fail_closed, where anything is enforced at all."""
        return self.fail_closed and self.enforce

    @property
    def would_close(self) -> bool:
        """Say whether what cannot be read passes only because nothing is enforced."""
        return self.fail_closed and not self.enforce


def unfold(snapshot: Snapshot) -> View:
    """Return the view of a snapshot."""
    proxy = snapshot.config.proxy
    mcp = snapshot.config.sandbox.mcp
    return View(
        snapshot=snapshot,
        proxy=proxy,
        fail_closed=mcp.fail_closed,
        enforce=mcp.enforce_policy,
        providers={name: _provider(provider) for name, provider in proxy.providers.items()},
        dialect_names={name: provider.dialect for name, provider in proxy.providers.items()},
        servers={server.id: server for server in mcp.servers},
        limits=Limits(max_frame=proxy.max_frame),
        guard=snapshot.guard,
        stores=snapshot.config.llm_storage.store_bodies,
        teacher=Teacher(snapshot),
        hide_denied=mcp.hide_denied,
    )


def _provider(provider: Provider) -> ProviderView:
    parts = urlsplit(provider.base_url)
    tls = parts.scheme == "https"
    others = (wires for name, wires in WIRES.items() if name != provider.dialect)
    return ProviderView(
        name=provider.name,
        origin=Origin(parts.hostname or "", parts.port or (443 if tls else 80), tls),
        host_field=parts.netloc.rpartition("@")[2].encode("idna" if not parts.netloc.isascii() else "ascii"),
        base_path=parts.path.encode("ascii"),
        aws=provider.aws if provider.aws.usable else None,
        wants_key=provider.dialect == "bedrock" and not provider.aws.usable,
        limited=provider.limits != ProviderLimits(),
        dialects=(*WIRES[provider.dialect], *chain.from_iterable(others)),
    )
