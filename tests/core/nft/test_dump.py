"""What nf_tables answers is read as it stands; what is cut or strange is read as far as it goes."""

from __future__ import annotations

import contextlib
import struct

from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.abi import netlink
from agentsh_net.core.errors import KernelError
from agentsh_net.core.nft import dump as nft_dump

HEAD = struct.pack(">BBH", 1, 0, 0)


def attributes(*pairs: tuple[int, bytes]) -> bytes:
    return b"".join(netlink.attribute(kind, value) for kind, value in pairs)


def name(text: str) -> bytes:
    return text.encode() + b"\0"


def handle(number: int) -> bytes:
    return struct.pack(">Q", number)


def test_a_table_has_a_handle_and_flags() -> None:
    body = HEAD + attributes((1, name("t")), (2, struct.pack(">I", 1)), (4, handle(7)))
    assert nft_dump.table(body) == nft_dump.Table(handle=7, flags=nft_dump.DORMANT)


def test_a_chain_with_a_hook_has_its_devices() -> None:
    devices = attributes((1, name("eth1")), (1, name("eth0")))
    hook = attributes((1, bytes(4)), (4, devices))
    body = HEAD + attributes((1, name("t")), (2, handle(3)), (3, name("egress")), (4, hook))
    assert nft_dump.chain(body) == nft_dump.Chain("egress", 3, hooked=True, devices=("eth0", "eth1"))


def test_a_chain_without_a_hook_is_not_hooked() -> None:
    assert nft_dump.chain(HEAD + attributes((2, handle(3)), (3, name("refuse")))) == nft_dump.Chain(
        "refuse", 3, hooked=False
    )


def test_rules_sets_counters_and_the_generation_are_read() -> None:
    assert nft_dump.rule(HEAD + attributes((2, name("output")), (3, handle(9)))) == ("output", 9)
    assert nft_dump.name_of_set(HEAD + attributes((2, name("deny4")), (16, handle(2)))) == ("deny4", 2)
    assert nft_dump.generation(HEAD + attributes((1, struct.pack(">I", 77)))) == 77
    packets = attributes((1, bytes(8)), (2, struct.pack(">Q", 5)))
    assert nft_dump.counter(HEAD + attributes((2, name("denied")), (4, packets))) == ("denied", 5)


def test_a_request_names_what_is_asked_for_in_order() -> None:
    assert nft_dump.request(nft_dump.INET, table="t", set="s") == HEAD + attributes(
        (1, name("t")), (2, name("s"))
    )


def elements(*keys: bytes) -> bytes:
    each = [attributes((1, attributes((1, key))), (9, b"a comment")) for key in keys]
    return HEAD + attributes(
        (1, name("t")), (2, name("s")), (3, b"".join(netlink.attribute(1, e) for e in each))
    )


@given(st.lists(st.binary(min_size=4, max_size=20).map(lambda b: b + bytes(-len(b) % 4)), max_size=20))
def test_every_key_of_a_message_is_read(keys: list[bytes]) -> None:
    assert list(nft_dump.keys(elements(*keys))) == keys


@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(noise: bytes) -> None:
    list(nft_dump.keys(noise))
    for read in (nft_dump.table, nft_dump.chain, nft_dump.rule, nft_dump.counter):
        with contextlib.suppress(KernelError):
            read(noise)
