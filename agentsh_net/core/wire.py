"""The layouts of bpf/agentsh.h in Python: map keys, map values, the record. A test compares both, byte by byte.

Knows bytes only: where they come from is kernel/'s business, what they mean to policy is kernel_plan's.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from ipaddress import IPv6Address

from agentsh_net.core.errors import KernelError
from agentsh_net.core.plane import Endpoint, Fate, Rule

MAX_RULES = 262_144
RING_BYTES = 1 << 20

KEY = struct.Struct("=16s2s2x")  # agentsh_key: address, port (network byte order), reserved
RULE = struct.Struct("=I")  # agentsh_rule: fate
CONFIG = struct.Struct("=IIQQ")  # agentsh_config: generation, enforce, sessions, workers
COUNTER = struct.Struct("=Q")
# agentsh_record: time_ns cgroup_id netns_cookie socket_cookie | pid tid uid generation | address port protocol |
# family fate hook flags | comm | session
RECORD = struct.Struct("=QQQQIIII16s2sHBBBB16sQ")

DENIED, TAGGED, LOST, COUNTERS = 0, 1, 2, 3  # agentsh_counter
OBSERVED = 1  # record.flags
UNLESS_OURS = 0x100  # rule.fate, beside the fate
ENFORCE, SESSIONS_ONLY = 1, 2  # config.enforce

FATES = {Fate.DENY: 1, Fate.TAG: 2}
_FATE_OF = {number: fate for fate, number in FATES.items()}
HOOKS = {1: "connect4", 2: "connect6", 3: "sendmsg4", 4: "sendmsg6", 5: "egress"}


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


@dataclass(frozen=True, slots=True)
class OwnIds:
    """Ids of cgroups of ours, 0 where there are none: the parent of all sessions', and the workers'."""

    sessions: int = 0
    workers: int = 0


NO_CGROUPS = OwnIds()


def encode_key(endpoint: Endpoint) -> bytes:
    """Return the key of the rules map for an endpoint."""
    return KEY.pack(endpoint.address.packed, endpoint.port.to_bytes(2, "big"))


def decode_key(data: bytes) -> Endpoint:
    """Return the endpoint of a key of the rules map."""
    address, port = KEY.unpack(data)
    return Endpoint(IPv6Address(address), int.from_bytes(port, "big"))


def encode_rule(rule: Rule) -> bytes:
    """Return the value of the rules map for a rule."""
    return RULE.pack(FATES[rule.fate] | (UNLESS_OURS if rule.unless_ours else 0))


def encode_config(
    *, generation: int, enforce: bool, sessions_only: bool = False, own: OwnIds = NO_CGROUPS
) -> bytes:
    """Return the one value of the config map."""
    switches = ENFORCE * enforce | SESSIONS_ONLY * sessions_only
    return CONFIG.pack(generation & 0xFFFFFFFF, switches, own.sessions, own.workers)


def decode(data: bytes) -> Record:
    """Return the record in `data`. Raises KernelError where the probe in force speaks another version of the ABI."""
    if len(data) < RECORD.size:
        raise KernelError(f"a record of {len(data)} bytes, expected {RECORD.size}", layer="ebpf")
    fields = RECORD.unpack_from(data)
    boot_ns, cgroup_id, netns, cookie, pid, tid, uid, generation, address, port, protocol, *rest = fields
    family, fate, hook, flags, comm, session = rest
    if fate not in _FATE_OF or hook not in HOOKS:
        raise KernelError(f"a record with fate {fate} and hook {hook}", layer="ebpf")
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
        observed=bool(flags & OBSERVED),
        comm=comm.split(b"\0", 1)[0].decode("utf-8", "replace"),
        session=session,
    )
