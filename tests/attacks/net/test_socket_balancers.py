"""Row 18 by a program of others that puts another address in place of the one that is connected to (Cilium's socket load balancer)."""

from __future__ import annotations

import os
import socket
import struct

import pytest
from attacks.net.test_processes import TCP
from attacks.net.test_routes import HANGS
from netns import box
from netns.scene import at, drain, listening, opened, outcome, plan
from netns.stage import BOTH, EBPF, NFT, OTHER, OTHER6, PLANES

from agentsh_net.kernel.bpf import syscall
from agentsh_net.kernel.cgroups.cgroup import hierarchy

pytestmark = pytest.mark.kernel

SERVICE, SERVICE6 = "10.94.0.9", "fd00:94::9"
# The first kernel of which it is known that ours may run before those that were there.
KNOWS_ORDER = tuple(int(n) for n in os.uname().release.split(".")[:2]) >= (6, 18)
EQUAL_OR_LEAVE, MOVE, LOAD, STORE, RETURN = 0x5D, 0xB4, 0x61, 0x63, 0x95  # linux/bpf.h


def instruction(code: int, to: int = 0, source: int = 0, offset: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, source << 4 | to, offset, value)


def balance(asked: str, given: str) -> None:
    """Attach programs to this box's cgroup root that make one address another as somebody connects or sends."""
    family, first = (socket.AF_INET6, 8) if ":" in asked else (socket.AF_INET, 4)  # struct bpf_sock_addr
    old, new = (struct.unpack(f"<{n}i", socket.inet_pton(family, a)) for n, a in ((4 if ":" in asked else 1, a) for a in (asked, given)))  # fmt: skip
    code = b""
    for place, word in enumerate(old):
        left = 3 * (len(old) - 1 - place) + 2 * len(new)
        code += instruction(LOAD, 2, 1, first + 4 * place) + instruction(MOVE, 3, value=word)
        code += instruction(EQUAL_OR_LEAVE, 2, 3, left)
    for place, word in enumerate(new):
        code += instruction(MOVE, 3, value=word) + instruction(STORE, 1, 3, first + 4 * place)
    code += instruction(MOVE, 0, value=1) + instruction(RETURN)
    hooks = (syscall.CONNECT6, syscall.SENDMSG6) if ":" in asked else (syscall.CONNECT4, syscall.SENDMSG4)
    root = os.open(hierarchy(), os.O_RDONLY)
    for hook in hooks:
        program = syscall.load_program("balancer", syscall.CGROUP_SOCK_ADDR, hook, code=code, licence="GPL")
        # As others do it, who do not ask to be the first.
        syscall.call(8, struct.pack("=IIII", root, program, hook, 2), "PROG_ATTACH")


def tried() -> dict[str, str]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        said = {"udp": outcome(lambda: client.sendto(b"x", (SERVICE, 443)))}
    for name, address in (("tcp", SERVICE), ("tcp6", SERVICE6)):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as client:
            client.settimeout(2.5)  # a SYN that is lost comes again after one second
            said[name] = outcome(lambda c=client, a=address: c.connect((a, 443)))
    return said


def balanced(layers: tuple[str, ...], denied: tuple[str, str], *, before: bool) -> tuple[dict[str, str], set[str], str]:  # fmt: skip
    """Have a balancer come before us or after us; return what was said to who asks for the service, of whom it was told, and the layers' detail."""
    far = box.there()
    servers = [listening(far, OTHER), listening(far, OTHER6)]

    def come() -> None:
        balance(SERVICE, OTHER)
        balance(SERVICE6, OTHER6)

    if before:
        come()
        assert set(tried().values()) == {"connected"}
    kernel = opened(plan(deny=tuple(map(at, denied))), *layers)
    if not before:
        come()
    said = tried()
    refused = [answer for answer in said.values() if answer != "connected"]
    told = {str(r.address) for r in drain(kernel, len(refused))} if refused else set()
    assert servers
    return said, told, "; ".join(s.detail for s in kernel.status() if s.wanted)


@pytest.mark.parametrize("before", [True, False], ids=["it was there", "it comes"])
@pytest.mark.parametrize("layers", [EBPF, BOTH], ids="+".join)
def test_a_denied_service_is_refused_although_others_programs_make_it_another(
    layers: tuple[str, ...], before: bool
) -> None:
    said, told, detail = box.in_box(lambda: balanced(layers, (SERVICE, SERVICE6), before=before))
    behind = "behind others' programs, which may rewrite addresses: agentsh_conn4, agentsh_conn6, agentsh_send4, agentsh_send6"
    # Open, and told: the address behind it is to be declared.
    if before and not KNOWS_ORDER and behind in detail:
        assert (set(said.values()), told) == ({"connected"}, set())
        return
    assert "behind others" not in detail
    assert set(said.values()) == {"EPERM"}
    assert told == {str(at(SERVICE).address), str(at(SERVICE6).address)}


def test_nftables_alone_sees_no_service_that_is_rewritten_before_there_is_a_packet() -> None:
    """Open, and told in the docs: the address behind the service is the only one that its packets ever have."""
    said, told, _ = box.in_box(lambda: balanced(NFT, (SERVICE, SERVICE6), before=True))
    assert (set(said.values()), told) == ({"connected"}, set())


@pytest.mark.parametrize("layers", PLANES, ids="+".join)
def test_a_service_that_becomes_a_denied_server_leads_nowhere(layers: tuple[str, ...]) -> None:
    said, told, _ = box.in_box(lambda: balanced(layers, (OTHER, OTHER6), before=True))
    # As a packet: where the order is known no connect hook of ours runs behind the other one.
    first = layers[-1]
    assert said.pop("udp") == "EPERM"
    assert set(said.values()) <= HANGS[first] | TCP[first] | (set() if KNOWS_ORDER else {"EPERM"})
    assert told == {str(at(OTHER).address), str(at(OTHER6).address)}
