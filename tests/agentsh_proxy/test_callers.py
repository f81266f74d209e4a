"""A request is of its socket's session whatever its path says, of its token's where the socket is of none, and told where both differ."""

from __future__ import annotations

import asyncio
from hashlib import sha256

import pytest
from agentsh_proxy.callers import Caller, caller, place
from gateway_front import FakeCharges

from agentsh_net.core.errors import ProtocolError

SESSIONS = {sha256(b"one").hexdigest(): "first", sha256(b"two").hexdigest(): "second"}


@pytest.mark.parametrize(
    ("here", "token", "whose"),
    [
        ("", "", Caller("default")),
        ("", "one", Caller("first")),
        ("first", "", Caller("first")),
        ("first", "one", Caller("first")),
        ("first", "two", Caller("first", "second")),
    ],
)
def test_the_socket_comes_before_the_token(here: str, token: str, whose: Caller) -> None:
    assert caller(here, token, SESSIONS) == whose


@pytest.mark.parametrize("here", ["", "first"])
def test_a_token_that_is_not_known_is_refused(here: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        caller(here, "three", SESSIONS)
    assert caught.value.status == 403


def test_a_client_of_whom_nobody_can_say_where_it_is_is_refused_where_policy_is_enforced() -> None:
    charges, client = FakeCharges(), asyncio.BaseTransport()
    charges.here = "mine"
    assert place(client, charges, enforce=True) == "mine"
    charges.here = None
    assert place(client, charges, enforce=False) == ""
    with pytest.raises(ProtocolError, match="nobody can say which session") as caught:
        place(client, charges, enforce=True)
    assert caught.value.status == 503
