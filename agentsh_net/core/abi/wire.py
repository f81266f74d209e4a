"""The layouts of bpf/agentsh.h in Python: map keys, map values, the record. A test compares both, byte by byte.

Knows bytes only: where they come from is kernel/'s business, what they mean to policy is attribution's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv6Address

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Egress, Endpoint, Fate, Finding, Name, Prefix, Rule

MAX_RULES = 262_144
RING_BYTES = 1 << 20

KEY = struct.Struct("=16s2s2x")  # agentsh_key: address, port (network byte order), reserved
RULE = struct.Struct("=I")  # agentsh_rule: fate
PREFIX = struct.Struct("=I2s2x16s")  # agentsh_prefix: bits, port (network byte order), reserved, address
CONFIG = struct.Struct("=IIQQ")  # agentsh_config: generation, switches, sessions, workers
COUNTER = struct.Struct("=Q")
# agentsh_record: time_ns cgroup_id netns_cookie socket_cookie | pid tid uid generation | address port protocol |
# family fate hook flags | comm | session
RECORD = struct.Struct("=QQQQIIII16s2sHBBBB16sQ")
NAME_BYTES = 256
NAME = struct.Struct(f"={NAME_BYTES}s2s2x")  # agentsh_name: name, port (network byte order), reserved
# The rest of an agentsh_hello_record: source, source_port (network byte order), finding, reserved, name
HELLO = struct.Struct(f"=16s2sHI{NAME_BYTES}s")
# agentsh_stream: start next left skip record_left value at | broken field length | verdict phase have reserved record_have marks | name
STREAM = struct.Struct("=IIIIIIIHHHBBBBBB")
STREAM_SIZE = STREAM.size + NAME.size
MAX_NAMES = 16_384

DENIED, TAGGED, LOST, LAST, COUNTERS = 0, 1, 2, 3, 4  # agentsh_counter
OBSERVED = 1  # record.flags
UNLESS_OURS, DECLARED = 0x100, 0x200  # rule.fate, beside the fate
ENFORCE, SESSIONS_ONLY, EGRESS_TELL, EGRESS_REFUSE = 1, 2, 4, 8  # config.switches

FATES = {Fate.ALLOW: 0, Fate.DENY: 1, Fate.TAG: 2, Fate.SNI: 3, Fate.SNI_OPEN: 4}
UNDECLARED = 5  # record.fate: a denial, or a tag where it was let pass
_FATE_OF = {FATES[fate]: fate for fate in (Fate.DENY, Fate.TAG)}  # what became of something
HOOKS = {1: "connect4", 2: "connect6", 3: "sendmsg4", 4: "sendmsg6", 5: "egress", 6: "hello"}
FINDINGS = {
    Finding.NAMED: 1,
    Finding.NAMELESS: 2,
    Finding.ENCRYPTED: 3,
    Finding.NO_HELLO: 4,
    Finding.UNSEEN: 5,
    Finding.URGENT: 6,
    Finding.FORGED: 7,
    Finding.MULTIPATH: 8,
}
_FINDING_OF = {number: finding for finding, number in FINDINGS.items()}
READING, PASSED, REFUSED = 0, 1, 2  # agentsh_stream.verdict


@dataclass(frozen=True, slots=True)
class Record:
    """One agentsh_record. `boot_ns` counts from boot, suspend included; `observed`: a denial that was let pass.

    Of a packet (`hook` is egress) the process is the one that made the socket; pid 0 where that is unknown.
    """

    boot_ns: int
    cgroup_id: int
    netns_cookie: int
    socket_cookie: int
    pid: int
    tid: int
    uid: int
    generation: int
    address: IPv6Address
    port: int
    protocol: int
    family: int
    fate: Fate
    hook: str
    observed: bool
    comm: str
    session: int = 0  # id of the session's cgroup, 0: none
    finding: Finding | None = None
    sni: str = ""
    source: tuple[IPv6Address, int] | None = None
    undeclared: bool = False


@dataclass(frozen=True, slots=True)
class OwnIds:
    """Ids of cgroups of ours, 0 where there are none: the parent of all sessions', and the workers'."""

    sessions: int = 0
    workers: int = 0


NO_CGROUPS = OwnIds()


@dataclass(frozen=True, slots=True)
class Stream:
    """How far a connection to a shared endpoint was read: its verdict, and the name that it carries."""

    verdict: int
    name: str


def encode_key(endpoint: Endpoint) -> bytes:
    """Return the key of the rules map for an endpoint."""
    return KEY.pack(endpoint.address.packed, endpoint.port.to_bytes(2, "big"))


def decode_key(data: bytes) -> Endpoint:
    """Return the endpoint of a key of the rules map."""
    address, port = KEY.unpack(data)
    return Endpoint(IPv6Address(address), int.from_bytes(port, "big"))


def encode_rule(rule: Rule) -> bytes:
    """Return the value of the rules map for a rule."""
    return RULE.pack(FATES[rule.fate] | UNLESS_OURS * rule.unless_ours | DECLARED * rule.declared)


def encode_prefix(prefix: Prefix) -> bytes:
    """Return the key of the prefixes map for a prefix; what is looked up has the port's 32 bits and all of its address's."""
    bits = 32 + prefix.network.prefixlen
    return PREFIX.pack(bits, prefix.port.to_bytes(2, "big"), prefix.network.network_address.packed)


def encode_config(
    *,
    generation: int,
    enforce: bool,
    sessions_only: bool = False,
    egress: Egress | None = None,
    own: OwnIds = NO_CGROUPS,
) -> bytes:
    """Return the one value of the config map."""
    switches = ENFORCE * enforce | SESSIONS_ONLY * sessions_only
    if egress is not None:
        switches |= EGRESS_REFUSE if egress.refuse else EGRESS_TELL
    return CONFIG.pack(generation & 0xFFFFFFFF, switches, own.sessions, own.workers)


def decode(data: bytes) -> Record:
    """Return the record in `data`. Raises KernelError where the probe in force speaks another version of the ABI."""
    if len(data) < RECORD.size:
        raise KernelError(f"a record of {len(data)} bytes, expected {RECORD.size}", layer="ebpf")
    fields = RECORD.unpack_from(data)
    boot_ns, cgroup_id, netns, cookie, pid, tid, uid, generation, address, port, protocol, *rest = fields
    family, fate, hook, flags, comm, session = rest
    undeclared, observed = fate == UNDECLARED, bool(flags & OBSERVED)
    if undeclared:
        fate, observed = FATES[Fate.TAG if observed else Fate.DENY], False
    if fate not in _FATE_OF or hook not in HOOKS:
        raise KernelError(f"a record with fate {fate} and hook {hook}", layer="ebpf")
    finding, sni, source = _hello(data) if HOOKS[hook] == "hello" else (None, "", None)
    return Record(
        boot_ns=boot_ns,
        cgroup_id=cgroup_id,
        netns_cookie=netns,
        socket_cookie=cookie,
        pid=pid,
        tid=tid,
        uid=uid,
        generation=generation,
        address=IPv6Address(address),
        port=int.from_bytes(port, "big"),
        protocol=protocol,
        family=family,
        fate=_FATE_OF[fate],
        hook=HOOKS[hook],
        observed=observed,
        comm=comm.split(b"\0", 1)[0].decode("utf-8", "replace"),
        session=session,
        finding=finding,
        sni=sni,
        source=source,
        undeclared=undeclared,
    )


def _hello(data: bytes) -> tuple[Finding, str, tuple[IPv6Address, int]]:
    """Return what a record tells of a ClientHello. Raises KernelError."""
    if len(data) < RECORD.size + HELLO.size:
        raise KernelError(f"a record of a ClientHello with {len(data)} bytes", layer="ebpf")
    source, port, finding, _, name = HELLO.unpack_from(data, RECORD.size)
    if finding not in _FINDING_OF:
        raise KernelError(f"a record with finding {finding}", layer="ebpf")
    return _FINDING_OF[finding], _text(name), (IPv6Address(source), int.from_bytes(port, "big"))


def _text(name: bytes) -> str:
    return name.split(b"\0", 1)[0].decode("ascii", "replace")


def encode_fate(fate: Fate) -> bytes:
    """Return the value of the names map for a fate."""
    return RULE.pack(FATES[fate])


def encode_name(name: Name) -> bytes:
    """Return the key of the names map for a name, of NAME_BYTES - 1 bytes at most."""
    return NAME.pack(name.host.encode("ascii"), name.port.to_bytes(2, "big"))


def decode_stream(data: bytes) -> Stream | None:
    """Return what a socket's value of the streams map says, None where it has none."""
    if len(data) != STREAM_SIZE:
        return None
    return Stream(
        verdict=STREAM.unpack_from(data)[10], name=_text(data[STREAM.size : STREAM.size + NAME_BYTES])
    )
