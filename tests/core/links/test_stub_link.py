"""What is said on the stub's link is understood as it was meant, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.links.stub_link import (
    MAX_DATAGRAM,
    MAX_SERVERS,
    Decided,
    Held,
    Serving,
    Upstream,
    decode,
    encode,
)

NUMBERS = st.integers(0, 0xFFFFFFFF)


@given(
    st.one_of(
        st.builds(Serving),
        st.builds(Held, NUMBERS, st.binary(min_size=1, max_size=600)),
        st.builds(Decided, NUMBERS, st.booleans()),
        st.builds(Upstream, st.lists(st.ip_addresses().map(str), max_size=MAX_SERVERS).map(tuple)),
    )
)
def test_every_message_survives_the_way(message: object) -> None:
    assert decode(encode(message)) == message


def test_the_largest_answer_fits() -> None:
    assert len(encode(Held(1, bytes(65535)))) <= MAX_DATAGRAM


@pytest.mark.parametrize("data", [b"", b"S!", b"H\0\0\0\1", b"D\0\0\0\1", b"D\0\0\0\1\1\1", b"U\xff", b"X"])
def test_anything_else_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(data)


def test_of_many_name_servers_the_first_are_taken() -> None:
    assert decode(b"U" + b",".join([b"::1"] * 99)) == Upstream(("::1",) * MAX_SERVERS)
