"""Whose socket it is is asked by cgroup, at every level at which the kernel may count it; by user only where there is no cgroup."""

from __future__ import annotations

from agentsh_net.core.nft.sockets import Sockets

HERE = Sockets("a/sessions", "a/workers", ".session", (2, 3))


def asked(matches: object) -> list[tuple[int, str]]:
    return [(m["match"]["left"]["socket"]["level"], m["match"]["right"]) for m in matches]


def test_every_level_is_asked_for() -> None:
    assert asked(HERE.of_sessions()) == [(2, "a/sessions"), (3, "a/sessions")]
    assert asked(HERE.of_workers()) == [(2, "a/workers"), (3, "a/workers")]


def test_a_session_is_one_level_below_all_of_them() -> None:
    assert asked(HERE.of_session("x")) == [(3, "a/sessions/x.session"), (4, "a/sessions/x.session")]


def test_without_cgroups_the_workers_are_known_by_a_user_of_their_own_and_sessions_are_not() -> None:
    nowhere = Sockets(worker_uid=990)
    (match,) = nowhere.of_workers()
    assert match["match"] == {"op": "==", "left": {"meta": {"key": "skuid"}}, "right": 990}
    assert list(nowhere.of_sessions()) == list(nowhere.of_session("x")) == []
    assert nowhere.knows_workers
    assert HERE.knows_workers
    assert not Sockets().knows_workers
    assert list(Sockets().of_workers()) == []


def test_where_there_are_cgroups_no_user_counts() -> None:
    both = Sockets("a/sessions", "a/workers", ".session", (2,), worker_uid=990)
    assert "skuid" not in str(list(both.of_workers()))
