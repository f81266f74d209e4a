"""A found packet is judged by whose it is, and what is logged of it says of which session it was."""

from __future__ import annotations

import json

import pytest

from agentsh_net.core.network.plane import Fate, Plan
from agentsh_net.core.nft import verdicts as nft_verdicts
from agentsh_net.core.nft.sockets import Sockets

SOCKETS = Sockets("agentsh-net/sessions", "agentsh-net/workers", ".session", (2,))


def made(plan: Plan, *, ours: bool = False) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for chain, expressions in nft_verdicts.rules(plan, 5, SOCKETS, tags=True, ours=ours):
        found.setdefault(chain, []).append(json.dumps(expressions))
    return found


@pytest.mark.parametrize("session", ["", "a", "s-0.1_x", "A" * 64])
@pytest.mark.parametrize("fate", [Fate.DENY, Fate.TAG])  # this plane reads no names
def test_a_log_prefix_reads_back(fate: Fate, session: str) -> None:
    text = nft_verdicts.prefix(fate, 2**64 - 1, session)
    assert nft_verdicts.parse_prefix(text) == (fate, 2**64 - 1, session)
    assert len(text) < 127  # NF_LOG_PREFIXLEN with its end


@pytest.mark.parametrize(
    "text",
    [
        *("", "agentsh-net:deny:", "agentsh-net:allow:1", "other:deny:1", "agentsh-net:deny:1x"),
        *("agentsh-net:deny:1:", "agentsh-net:deny:1:a:b"),
    ],
)
def test_a_log_prefix_of_somebody_else_is_not_ours(text: str) -> None:
    assert nft_verdicts.parse_prefix(text) is None


def test_without_sessions_and_providers_there_are_refusal_and_tag_alone() -> None:
    assert made(Plan(mark=1, mark_mask=1)).keys() == {"refuse", "refuse_routed", "tag", "tag_routed"}


@pytest.mark.parametrize("mask", [0, 0xFF])
def test_the_packet_of_a_session_is_logged_once_with_its_name(mask: int) -> None:
    chains = made(Plan(mark=mask, mark_mask=mask, sessions=("one",)))
    for chain, ends in (("refuse", '"reject"'), ("tag", '{"return": null}]')):
        named = [rule for rule in chains[chain] if "sessions/one.session" in rule]
        assert named
        assert all(':1:one"' in rule or ':0:one"' in rule for rule in named)
        assert all(ends in rule for rule in named), "nothing of it comes to the log that names nobody"
        assert not any("one" in rule for rule in chains[f"{chain}_routed"])


def test_of_tcp_the_first_segment_alone_comes_to_the_log() -> None:
    first, *rest = made(Plan())["tag"]
    assert '"field": "flags"' in first
    assert first.endswith('{"return": null}]')
    assert not any('"flags"' in rule for rule in rest)


def test_a_flow_that_is_remembered_comes_to_no_log_and_one_that_finds_no_room_does() -> None:
    tag = made(Plan())["tag"]
    known = [rule for rule in tag if '"op": "update"' in rule]
    added = [rule for rule in tag if '"op": "add"' in rule]
    assert len(known) == len(added) == 2  # IPv4 and IPv6
    assert all(rule.endswith('{"return": null}]') for rule in known)
    # A statement that fails ends its rule: the log is in another.
    assert not any('"log"' in rule for rule in (*known, *added))
    assert '"log"' in tag[-1]
    assert all(tag.index(found) + 1 == tag.index(new) for found, new in zip(known, added, strict=True))


def test_every_packet_of_a_connection_is_marked_before_anything_is_asked_of_it() -> None:
    tag = made(Plan(mark=1, mark_mask=1))["tag"]
    assert ['"mangle"' in rule for rule in tag] == [True, True] + [False] * (len(tag) - 2)


def test_with_sessions_alone_who_is_in_none_comes_to_no_verdict() -> None:
    chains = made(Plan(mark=1, mark_mask=1, sessions_only=True), ours=True)
    for stem in ("refuse", "tag"):
        (gate,) = chains[f"{stem}_scope"]
        assert '"right": "agentsh-net/sessions"' in gate
        assert chains[f"{stem}_ours"][-1] == f'[{{"goto": {{"target": "{stem}_scope"}}}}]'


def test_a_packet_leaves_its_lookup_for_the_chain_that_asks_what_has_to_be_asked() -> None:
    everybody, sessions = Plan(), Plan(sessions_only=True)

    def chain(plan: Plan, *, ours: bool = False, routed: bool = False) -> str:
        return nft_verdicts.verdict(Fate.DENY, plan, ours=ours, routed=routed)["goto"]["target"]

    assert chain(everybody) == "refuse"
    assert chain(sessions) == "refuse_scope"
    assert chain(sessions, ours=True) == chain(everybody, ours=True) == "refuse_ours"
    assert chain(everybody, ours=True, routed=True) == "refuse_routed"
