"""What the daemon asks of a kernel: a Protocol of few methods, so that a small fake serves the tests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from ipaddress import IPv6Address, IPv6Network
from typing import Protocol

from agentsh_net.core.abi.ip_packet import Packet


class Fate(StrEnum):
    """What a plane does with a packet or a connect to an endpoint."""

    DENY = "deny"
    TAG = "tag"
    # The server name in a connection's TLS ClientHello decides (`Plan.names`). Where there is none to be read:
    SNI = "sni"  # a denial
    SNI_OPEN = "sni_open"  # a tag
    ALLOW = "allow"  # nothing: the rule only declares


class Finding(StrEnum):
    """What was found where a ClientHello should be; all but NAMED leave unknown whom a connection is for."""

    NAMED = "a server name"
    NAMELESS = "a ClientHello without a server name"
    ENCRYPTED = "an encrypted ClientHello"
    NO_HELLO = "no TLS ClientHello that can be read"
    UNSEEN = "a connection whose beginning was not seen"
    URGENT = "urgent data"
    FORGED = "TCP that is not of a TCP socket"
    MULTIPATH = "MPTCP, whose bytes take several ways"


@dataclass(frozen=True, slots=True, order=True)
class Endpoint:
    """Where an MCP server listens. IPv4 is `::ffff:a.b.c.d`; port 0 means every port and protocol."""

    address: IPv6Address
    port: int = 0
    # Plans of 50,000 are compared key by key, and an address takes a microsecond to hash.
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((int(self.address), self.port)))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Rule:
    """What is done at an endpoint, and for which declared servers (sorted ids).

    `shared`: a denied and an allowed server live at this very endpoint, and `network.on_shared_address` chose the fate.
    `providers`: the LLM providers (sorted names) that are reached here; then our own proxy is exempt from the rule.
    `declared`: sessions that reach only what is declared may come here (`Plan.egress`).
    """

    fate: Fate
    server_ids: tuple[str, ...]
    shared: bool = False
    providers: tuple[str, ...] = ()
    declared: bool = False

    @property
    def unless_ours(self) -> bool:
        """Say whether the proxy's own workers are exempt."""
        return bool(self.providers)


@dataclass(frozen=True, slots=True, order=True)
class Name:
    """Whom a ClientHello names: a host, lower case and without a dot at its end; port 0 is every port."""

    host: str
    port: int = 0


@dataclass(frozen=True, slots=True, order=True)
class Prefix:
    """Addresses that are declared, in the form that planes look up; port 0 is every port and protocol."""

    network: IPv6Network
    port: int = 0


@dataclass(frozen=True, slots=True)
class Egress:
    """Sessions reach only what rules or `prefixes` (sorted) declare; without `refuse` it is only told.

    `everybody`: whoever is not our own proxy is as a session.
    """

    refuse: bool
    prefixes: tuple[Prefix, ...] = ()
    everybody: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """The desired state of every plane: applying it twice changes nothing. Equal plans have equal rules.

    `sessions` are those that run now (sorted ids), whose events are told apart; `sessions_only`: nobody else is looked at.
    `names` (DENY or TAG) decide at endpoints whose fate is SNI or SNI_OPEN; a name that is not there is nobody's of ours.
    `alone`: no other plane sees where a client connects to, but only what becomes of its packets.
    `egress`: what holds for sessions besides; None where they may connect to whatever is not denied.
    """

    generation: int = 0
    rules: Mapping[Endpoint, Rule] = field(default_factory=dict)
    mark: int = 0
    mark_mask: int = 0
    sessions: tuple[str, ...] = ()
    sessions_only: bool = False
    names: Mapping[Name, Fate] = field(default_factory=dict)
    alone: bool = False
    egress: Egress | None = None


@dataclass(frozen=True, slots=True)
class ConnectRecord:
    """One attempt that a plane saw. `time_ns` is wall-clock time; pid 0 means that the plane cannot know the process."""

    layer: str  # ebpf | nftables | sweep
    fate: Fate
    address: IPv6Address
    port: int
    protocol: int  # IPPROTO_*
    family: int  # AF_INET | AF_INET6, as the process saw it
    time_ns: int
    generation: int = 0
    pid: int = 0
    uid: int | None = None
    comm: str = ""
    exe: str = ""
    cgroup: str = ""
    container_id: str = ""
    observed: bool = False  # the fate was a denial, but the layer let it pass
    session_id: str = ""  # whose agent it was; empty: nobody's that is known
    finding: Finding | None = None  # at a shared endpoint: what was found where a ClientHello should be
    sni: str = ""  # the name in it
    undeclared: bool = False  # of a session, and what it connects to is not declared (`Plan.egress`)


@dataclass(frozen=True, slots=True)
class LayerStatus:
    """What the kernel itself says of one layer. `in_force` is never remembered, always asked."""

    layer: str  # ebpf | nftables
    wanted: bool
    in_force: bool
    detail: str = ""  # program ids, table handle, element counts
    reason: str = ""  # why it is not in force
    remedy: str = ""  # the command that mends it
    denied: int = 0
    tagged: int = 0
    lost: int = 0
    attachment: str = ""  # how programs are held where they are, as the kernel confirms it
    silent: str = ""  # why it tells no events while it is in force
    behind: str = ""  # what came to the machine since and is not covered: applying the same plan covers it


class Cgroups(Protocol):
    """The cgroups of ours: one for each session, one for the proxy's workers. Raises KernelError."""

    def live(self) -> list[str]:
        """Return the ids of the sessions that have a cgroup, sorted."""
        ...

    def begin(self, session_id: str) -> None:
        """Make a session's cgroup; one in which something still runs is refused."""
        ...

    def enter(self, session_id: str, pid: int) -> None:
        """Move a process into a session's cgroup."""
        ...

    def session_of_process(self, pid: int) -> str:
        """Return the session in which a process runs; empty where it runs in none."""
        ...

    def session_of_sender(self, packet: Packet) -> str | None:
        """Return the session in which the socket was made that sends such packets; empty where in none, None where nobody can say."""
        ...

    def ended(self) -> list[str]:
        """Return the sessions in which nothing runs any more."""
        ...

    def end(self, session_id: str) -> None:
        """Remove a session's cgroup."""
        ...

    def employ(self, pid: int) -> None:
        """Move a process of the proxy's into the workers' cgroup."""
        ...


class Kernel(Protocol):
    """The kernel planes together. Raises KernelError; a failed apply leaves the old plan in force."""

    @property
    def cgroups(self) -> Cgroups | None:
        """The cgroups of ours, None where none can be had (`status` says why)."""
        ...

    @property
    def inherited(self) -> bool:
        """Say whether an earlier daemon's programs or rules were in force when the first plan was applied."""
        ...

    def apply(self, plan: Plan) -> None:
        """Make every layer enforce exactly `plan`: adds before deletes, one transaction where the layer has one."""
        ...

    def reassert(self) -> None:
        """Put back what is missing of the plan that was applied last, and cover what came to the machine since."""
        ...

    def sweep(self, plan: Plan) -> list[ConnectRecord]:
        """Close established sockets to denied endpoints and return what was closed."""
        ...

    def filenos(self) -> list[int]:
        """Return the descriptors that become readable when `records` has something."""
        ...

    def records(self) -> list[ConnectRecord]:
        """Return what was seen since the last call, without waiting."""
        ...

    def disturbed(self) -> bool:
        """Say, without waiting, whether somebody may have touched a layer since the last call: then `status` is to be asked."""
        ...

    def status(self) -> list[LayerStatus]:
        """Ask the kernel what is in force."""
        ...

    def close(self, *, remove: bool) -> None:
        """Let go of the kernel: with `remove` nothing of ours stays in it, without it enforcement stays on."""
        ...
