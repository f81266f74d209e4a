"""A follower gets the events it wants, lags no further than its bound, and holds nobody else up."""

import asyncio
import json

import pytest

from agentsh_net.control import tail
from agentsh_net.control.errors import ControlError
from agentsh_net.control.tail import Followers, Wanted
from agentsh_net.core.errors import ProtocolError


class Transport:
    """What a follower was sent, and how much of it is still in the buffer."""

    def __init__(self):
        self.sent: list[dict] = []
        self.unread = 0
        self.closed = self.aborted = False

    def write(self, line):
        self.sent.append(json.loads(line))

    def get_write_buffer_size(self):
        return self.unread

    def close(self):
        self.closed = True

    def abort(self):
        self.aborted = True


EVENT = {
    "type": "mcp_tool_called",
    "session_id": "s",
    "server_id": "Weather",
    "tool_name": "get",
    "action": "allow",
}


@pytest.mark.parametrize(
    ("args", "matches"),
    [
        ({}, True),
        ({"server": None}, True),
        ({"server": "weather"}, True),
        ({"server": "weath"}, False),
        ({"type": "mcp_*", "action": "ALLOW"}, True),
        ({"type": "mcp_*", "action": "block"}, False),
        ({"tool": "g.t"}, False),
        ({"session": "*"}, True),
    ],
)
def test_a_filter_matches_whole_values_with_stars(args, matches):
    assert Wanted.parse(args).matches(EVENT) is matches


def test_an_event_without_the_field_matches_only_anything():
    assert Wanted.parse({"server": "*"}).matches({"type": "x", "server_id": None})
    assert not Wanted.parse({"server": "x"}).matches({"type": "x"})


@pytest.mark.parametrize("args", [{"colour": "red"}, {"server": 1}])
def test_a_bad_filter_is_refused(args):
    with pytest.raises(ProtocolError):
        Wanted.parse(args)


def test_events_go_to_those_who_want_them():
    followers, all_of_it, blocks = Followers(), Transport(), Transport()
    followers.add(all_of_it, Wanted())
    followers.add(blocks, Wanted.parse({"action": "block"}))
    followers.publish(EVENT)
    assert (all_of_it.sent, blocks.sent) == ([EVENT], [])
    assert followers.there
    followers.remove(all_of_it)
    followers.publish(EVENT)
    assert len(all_of_it.sent) == 1


def test_a_slow_follower_is_dropped_with_a_notice_and_the_others_go_on(monkeypatch):
    monkeypatch.setattr(tail, "_LINGER", 0.0)

    async def scene():
        followers, slow, quick = Followers(), Transport(), Transport()
        followers.add(slow, Wanted())
        followers.add(quick, Wanted())
        slow.unread = tail.MAX_BUFFER
        followers.publish(EVENT)
        followers.publish(EVENT)
        await asyncio.sleep(0.01)
        return slow, quick

    slow, quick = asyncio.run(scene())
    assert [line["error"]["kind"] for line in slow.sent] == ["slow_reader"]
    assert slow.closed and slow.aborted
    assert quick.sent == [EVENT, EVENT]


def test_followers_are_bounded():
    followers = Followers()
    for _ in range(tail.MAX_FOLLOWERS):
        followers.add(Transport(), Wanted())
    with pytest.raises(ControlError, match="follow already"):
        followers.add(Transport(), Wanted())


def test_at_the_end_every_follower_is_told():
    async def scene():
        followers, one = Followers(), Transport()
        followers.add(one, Wanted())
        followers.end()
        return one

    one = asyncio.run(scene())
    assert one.sent[0]["error"]["kind"] == "stopping"
    assert one.closed
