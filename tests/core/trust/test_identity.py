"""A server is the same by what matters about it: a key kept through a renewal, the bytes of what runs, every letter it tells a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from agentsh_net.core.model import PinState, Server, Transport
from agentsh_net.core.trust import identity
from agentsh_net.core.trust.identity import Aspect, Identity

SERVER = Server("s", Transport.HTTP, url="https://h/mcp", host="h", port=443)
A, B, C = ("sha256:" + digit * 64 for digit in "abc")


def see(known: Identity | None, aspect: Aspect, value: Any, server: Server = SERVER, *, trust_first: bool = True) -> Identity:  # fmt: skip
    return identity.seen(known, server, aspect, value, trust_first=trust_first, now="now")


@pytest.mark.parametrize(
    ("aspect", "pinned", "offered", "same"),
    [
        (Aspect.TLS, identity.tls(A, B), identity.tls(A, B), True),
        (Aspect.TLS, identity.tls(A, B), identity.tls(C, B), True),
        (Aspect.TLS, identity.tls(A, B), identity.tls(B, C), False),
        (Aspect.TLS, identity.tls(A, ""), identity.tls(B, ""), False),
        (Aspect.BINARY, identity.binary("/x", A, []), identity.binary("/y", A, []), True),
        (Aspect.BINARY, identity.binary("/x", A, []), identity.binary("/x", B, []), False),
        (Aspect.BINARY, identity.binary("/x", A, [("s", B)]), identity.binary("/x", A, [("s", C)]), False),
        (Aspect.BINARY, identity.binary("/x", A, [("s", B)]), identity.binary("/x", A, []), False),
        (Aspect.INSTRUCTIONS, identity.instructions("be kind"), identity.instructions("be kind"), True),
        (Aspect.INSTRUCTIONS, identity.instructions("be kind"), identity.instructions("be kind\u200b"), False),
        (Aspect.INSTRUCTIONS, identity.instructions(""), identity.instructions("now obey me"), False),
        (Aspect.INSTRUCTIONS, identity.instructions("x" * 99_999 + "a"), identity.instructions("x" * 99_999 + "b"), False),
    ],
)  # fmt: skip
def test_what_counts_as_a_change(aspect: Aspect, pinned: Any, offered: Any, same: bool) -> None:
    assert identity.same(aspect, pinned, offered) is same
    first = see(None, aspect, pinned)
    assert see(first, aspect, offered).state is (PinState.TRUSTED if same else PinState.CHANGED)


def test_the_first_sight_is_trusted_only_where_the_policy_says_so() -> None:
    assert see(None, Aspect.TLS, identity.tls(A, B)).trusted_at == "now"
    waiting = see(None, Aspect.TLS, identity.tls(A, B), trust_first=False)
    assert (waiting.state, waiting.pinned) == (PinState.NEW, {})
    assert see(waiting, Aspect.TLS, identity.tls(A, B)).state is PinState.NEW, "somebody has to look at it"
    assert identity.trusted(waiting, "later").state is PinState.TRUSTED


def test_that_a_server_says_nothing_wants_nobodys_trust_and_that_it_begins_to_is_a_change() -> None:
    silent = see(None, Aspect.INSTRUCTIONS, identity.instructions(""), trust_first=False)
    assert silent.state is PinState.TRUSTED
    assert see(silent, Aspect.INSTRUCTIONS, identity.instructions("obey")).state is PinState.CHANGED
    spoke = see(None, Aspect.INSTRUCTIONS, identity.instructions("obey"), trust_first=False)
    assert spoke.state is PinState.NEW
    assert (
        see(spoke, Aspect.INSTRUCTIONS, identity.instructions(""), trust_first=False).state
        is PinState.TRUSTED
    )


def test_only_of_instructions_is_there_nothing_to_trust_or_forget_while_they_were_always_empty() -> None:
    empty, text = identity.instructions(""), identity.instructions("obey")
    never = see(None, Aspect.INSTRUCTIONS, empty)
    began = see(never, Aspect.INSTRUCTIONS, text)
    ended = see(see(None, Aspect.INSTRUCTIONS, text), Aspect.INSTRUCTIONS, empty)
    of_tls = see(None, Aspect.TLS, identity.tls(A, B))
    assert [identity.silent(i) for i in (never, began, ended, of_tls)] == [True, False, False, False]


def test_a_change_keeps_what_was_trusted_until_somebody_trusts_the_new() -> None:
    changed = see(see(None, Aspect.TLS, identity.tls(A, A)), Aspect.TLS, identity.tls(B, B))
    assert changed.pinned == identity.tls(A, A)
    assert see(changed, Aspect.TLS, identity.tls(A, A)).state is PinState.TRUSTED
    trusted = identity.trusted(changed, "later")
    assert see(trusted, Aspect.TLS, identity.tls(A, A)).state is PinState.CHANGED
    assert identity.forgotten(trusted).state is PinState.NEW


@pytest.mark.parametrize(("declared", "state"), [(A, "trusted"), (B, "trusted"), (C, "changed")])
def test_a_declared_fingerprint_names_certificate_or_key_and_stands_above_what_was_seen_first(
    declared: str, state: str
) -> None:
    server = Server("s", Transport.HTTP, url="https://h/mcp", tls_fingerprint=declared)
    stands = see(see(None, Aspect.TLS, identity.tls(C, C)), Aspect.TLS, identity.tls(A, B), server)
    assert (stands.state, stands.declared) == (state, True)
    undeclared = see(stands, Aspect.TLS, identity.tls(A, B))
    assert (undeclared.state, undeclared.declared) == ("trusted", False)


def test_a_declared_fingerprint_says_nothing_of_what_else_is_pinned() -> None:
    server = replace(SERVER, tls_fingerprint=A)
    assert see(None, Aspect.TLS, identity.tls(A, B), server).declared
    assert not see(None, Aspect.INSTRUCTIONS, identity.instructions("hi"), server).declared


def test_instructions_are_pinned_of_every_server_and_the_rest_where_the_policy_asks_for_it() -> None:
    def pinned(**settings: Any) -> set[str]:
        server = replace(SERVER, **{"pin_tls": False, **settings})
        return {str(aspect) for aspect in Aspect if identity.wanted(server, aspect)}

    assert pinned() == {"instructions"}
    assert pinned(pin_binary=True) == {"instructions", "binary"}
    assert pinned(pin_tls=True) == pinned(tls_fingerprint=A) == {"instructions", "tls"}


def test_a_mark_stands_for_what_is_pinned_and_no_mark_for_nothing() -> None:
    for aspect in Aspect:
        assert identity.mark(aspect, identity.marked("m")) == "m"
        assert identity.marked(identity.mark(aspect, {})) == {}


def test_marks_are_the_digests_that_other_programs_print() -> None:
    assert identity.mark(Aspect.TLS, identity.tls(A, B)) == A
    assert identity.mark(Aspect.BINARY, identity.binary("/x", B, [])) == B
    scripts = {identity.mark(Aspect.BINARY, identity.binary("/x", B, [("s", one)])) for one in (A, B, C)}
    assert len(scripts - {A, B, C}) == 3
    assert all(mark.startswith("sha256:") for mark in scripts)
    assert identity.mark(Aspect.TLS, {"declared": C}) == C
    assert identity.mark(Aspect.INSTRUCTIONS, identity.instructions("a")).startswith("sha256:")
    assert identity.mark(Aspect.TLS, {}) == ""
