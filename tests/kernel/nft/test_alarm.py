"""Whoever commits to nf_tables in this namespace is heard, once; who does so elsewhere is not."""

from __future__ import annotations

import subprocess

import pytest
from netns import box

from agentsh_net.kernel.nft.alarm import Alarm

pytestmark = pytest.mark.kernel

SOL_NETLINK, LIST_MEMBERSHIPS = 270, 9  # netlink(7): the groups as bits


def nft(text: str) -> None:
    subprocess.run(["nft", *text.split()], check=True)


def rings() -> list[bool]:
    alarm = Alarm()
    heard = [alarm.rang()]
    nft("add table inet theirs")
    heard += [alarm.rang(), alarm.rang()]
    nft("list ruleset")
    heard.append(alarm.rang())
    box.new_namespace().call(lambda: nft("add table inet elsewhere"))
    heard.append(alarm.rang())
    nft("flush ruleset")
    heard.append(alarm.rang())
    alarm.close()
    return heard


def test_a_commit_rings_once_and_reading_does_not() -> None:
    assert box.in_box(rings) == [False, True, False, False, False, True]


def interrupted() -> list[bool]:
    alarm = Alarm()
    with alarm.deaf():
        nft("add table inet ours")
        within = alarm._netlink.socket.getsockopt(SOL_NETLINK, LIST_MEMBERSHIPS)
    heard = [bool(within), alarm.rang(), alarm.rang()]
    nft("add table inet theirs")
    return [*heard, alarm.rang(), alarm.rang()]


def test_what_is_not_heard_of_our_own_commits_rings_once_and_others_are_heard_again() -> None:
    assert box.in_box(interrupted) == [False, True, False, True, False]


def flooded() -> list[bool]:
    alarm = Alarm()
    for _ in range(40):
        nft("add table inet theirs")
        subprocess.run(["nft", "-f", "-"], input="add chain inet theirs c\n" * 50, text=True, check=True)
        nft("delete table inet theirs")
    heard = []
    while alarm.rang():
        heard.append(True)
        assert len(heard) < 1000
    return [*heard[:1], alarm.rang()]


def test_more_than_can_be_kept_is_heard_all_the_same() -> None:
    assert box.in_box(flooded) == [True, False]
