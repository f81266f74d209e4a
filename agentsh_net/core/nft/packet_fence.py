"""The table `netdev agentsh_net`: the last look at whatever leaves by a device, as the bytes that will be on the wire.

For what no other hook sees: packet sockets (AF_PACKET), what a bridge or a flow table hands on, what was rewritten or wrapped
behind the other tables. Text for libnftables, because its JSON cannot describe sets that are looked up by raw bytes. Raw
bytes, because nothing that a packet socket says is believed: not its protocol number, not where its headers begin. Denials of
whole addresses only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from agentsh_net.core.network.kernel_plan import Diff
from agentsh_net.core.network.plane import Endpoint, Fate, Plan, Rule
from agentsh_net.core.nft.ruleset import TABLE
from agentsh_net.core.nft.sets import SIX_TO_FOUR, spellings
from agentsh_net.core.nft.verdicts import SNAPLEN, prefix

COUNTER = "denied"
CHAIN = "egress"  # begins the names of the chains that hang on devices
SETS = ("deny4", "deny6", "site6")
# On a chain: the kernel refuses as many as NFT_NETDEVHOOK_MAX, which is 256.
MAX_DEVICES = 255
_LOOPBACK = 1  # its index in every network namespace; what is sent there goes nowhere else

_TAGS = "{ 0x8100, 0x88a8 }"
# Without a readable link header (devices that have none, or a socket that skips the queue and lies about its protocol) the
# network header is tried at each place where a lie can put it. Receivers read as many tags as there are: a third one, which
# nobody needs, is refused, and so is a second one where there was no link header to read the first in.
_JUDGES: Mapping[str, Sequence[str]] = {
    "four": ("@ll,240,32 @deny4 goto refuse",),
    "six": ("@ll,304,128 @deny6 goto refuse", "@ll,304,48 @site6 goto refuse"),
    "tagged": (
        "@ll,128,16 0x0800 @ll,272,32 @deny4 goto refuse",
        "@ll,128,16 0x86dd @ll,336,128 @deny6 goto refuse",
        "@ll,128,16 0x86dd @ll,336,48 @site6 goto refuse",
        "@ll,160,16 0x0800 @ll,304,32 @deny4 goto refuse",
        "@ll,160,16 0x86dd @ll,368,128 @deny6 goto refuse",
        "@ll,160,16 0x86dd @ll,368,48 @site6 goto refuse",
        f"@ll,128,16 {_TAGS} @ll,160,16 {_TAGS} goto refuse",
    ),
    "unlinked": (
        "@nh,0,4 4 @nh,128,32 @deny4 goto refuse",
        "@nh,0,4 6 @nh,192,128 @deny6 goto refuse",
        "@nh,0,4 6 @nh,192,48 @site6 goto refuse",
        "@nh,16,16 0x0800 @nh,32,4 4 @nh,160,32 @deny4 goto refuse",
        "@nh,16,16 0x86dd @nh,32,4 6 @nh,224,128 @deny6 goto refuse",
        "@nh,16,16 0x86dd @nh,32,4 6 @nh,224,48 @site6 goto refuse",
        f"meta protocol {_TAGS} @nh,96,32 @deny4 goto refuse",
        f"meta protocol {_TAGS} @nh,160,128 @deny6 goto refuse",
        f"meta protocol {_TAGS} @nh,160,48 @site6 goto refuse",
        # An honest header does not look so: an IPv4 fragment of 33 KB, an IPv6 packet of UDP-Lite or with no hop left.
        f"@nh,16,16 {_TAGS} @nh,48,16 {{ 0x0800, 0x86dd, 0x8100, 0x88a8 }} goto refuse",
    ),
}
# What has a route (rtclassid is readable) was judged by the tables of `inet`, and by eBPF as it left its socket. Without eBPF
# it is judged once more: what was rewritten, wrapped or handed on behind those tables has a route too.
_ROUTED = "meta rtclassid 0 accept"
_EGRESS = (
    "@ll,96,16 0x0800 goto four",
    "@ll,96,16 0x86dd goto six",
    f"@ll,96,16 {_TAGS} goto tagged",
    "@ll,96,16 >= 0 accept",
    "goto unlinked",
)
_KEYS = {"deny4": "@nh,128,32", "deny6": "@nh,192,128", "site6": "@nh,192,48"}


def wanted(plan: Plan) -> bool:
    """Say whether there is anything to stop. Not for sessions alone: a device tells no cgroup, and their agents may have no such socket."""
    return not plan.sessions_only and any(_stopped(endpoint, rule) for endpoint, rule in plan.rules.items())


def devices(found: Iterable[tuple[int, str]]) -> tuple[str, ...]:
    """Return the devices (index, name) to hang on: all but loopback."""
    return tuple(sorted(name for index, name in found if index != _LOOPBACK))


def fill(
    plan: Plan, names: Sequence[str], *, nflog_group: int, routed: bool = True, table: str = TABLE
) -> str:
    """Return the transaction that makes an empty table exactly `plan`. `routed`: the kernel can tell what has a route."""
    log = f'log prefix "{prefix(Fate.DENY, plan.generation)}" group {nflog_group} snaplen {SNAPLEN}'
    chains = {"refuse": (f"counter name {COUNTER}", log, "drop"), **_JUDGES}
    lines = [
        f"add counter netdev {table} {COUNTER}",
        *(f"add set netdev {table} {name} {{ typeof {key}; }}" for name, key in _KEYS.items()),
        *(f"add chain netdev {table} {name}" for name in chains),
        *(f"add rule netdev {table} {name} {rule}" for name, rules in chains.items() for rule in rules),
    ]
    filled = "\n".join(lines) + "\n" + _change("add", plan.rules, table)
    return filled + hang(plan, names, routed=routed, table=table)


def hang(
    plan: Plan, names: Sequence[str], *, routed: bool = True, table: str = TABLE, beside: Iterable[str] = ()
) -> str:
    """Return the transaction that hangs a table on devices. `beside`: the chains by which it hangs already, on others."""
    turn = next(t for t in "ab" if not any(chain.startswith(CHAIN + t) for chain in beside))
    parts = -(-len(names) // MAX_DEVICES)
    lines = []
    for part in range(parts):  # dealt out: an older kernel deletes a chain with its last device
        devices = ", ".join(f'"{name}"' for name in names[part::parts])
        chain = f"netdev {table} {CHAIN}{turn}{part}"
        hook = f"type filter hook egress devices = {{ {devices} }} priority 0; policy accept;"
        rules = (_ROUTED, *_EGRESS) if routed and not plan.alone else _EGRESS
        lines += [f"add chain {chain} {{ {hook} }}", *(f"add rule {chain} {rule}" for rule in rules)]
    return "".join(f"{line}\n" for line in lines)


def take_down(chains: Iterable[str]) -> str:
    """Return the transaction that takes the table off the devices of these chains."""
    return "".join(f"delete chain netdev {TABLE} {chain}\n" for chain in chains)


def widen(step: Diff) -> str:
    """Return the transaction that adds what `step` adds; empty where that is nothing."""
    return _change("add", step.adds, TABLE)


def narrow(old: Plan, new: Plan, step: Diff) -> str:
    """Return the transaction that takes away what only `old` stops; empty where that is nothing."""
    touched = {e: old.rules[e] for e in (*step.adds, *step.deletes) if e in old.rules}
    gone = {e: rule for e, rule in touched.items() if e not in new.rules or not _stopped(e, new.rules[e])}
    return _change("delete", gone, TABLE)


def keys(plan: Plan) -> dict[str, set[bytes]]:
    """Return what each set holds when `plan` is in force, as the kernel tells it: padded to words of 32 bits."""
    found: dict[str, set[bytes]] = {name: set() for name in SETS}
    for name, value in _elements(plan.rules):
        found[name].add(value + bytes(-len(value) % 4))
    return found


def _stopped(endpoint: Endpoint, rule: Rule) -> bool:
    return rule.fate is Fate.DENY and endpoint.port == 0


def _elements(rules: Mapping[Endpoint, Rule]) -> Iterable[tuple[str, bytes]]:
    for endpoint, rule in rules.items():
        if not _stopped(endpoint, rule):
            continue
        for version, packed in spellings(endpoint.address, with_port=False):
            if version == 4:
                yield "deny4", packed
            elif packed.startswith(SIX_TO_FOUR):  # a canonical address is none, so this is an IPv4 one's site
                yield "site6", packed[:6]
            else:
                yield "deny6", packed


def _change(verb: str, rules: Mapping[Endpoint, Rule], table: str) -> str:
    by_set: dict[str, list[str]] = {}
    for name, value in _elements(rules):
        by_set.setdefault(name, []).append(f"0x{value.hex()}")
    return "".join(
        f"{verb} element netdev {table} {name} {{ {', '.join(values)} }}\n" for name, values in by_set.items()
    )
