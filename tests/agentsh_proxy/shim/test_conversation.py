"""Lines between a client and a server: what stands passes and is told of, what does not waits, and a denied server hears nothing."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from agentsh_proxy.shim.conversation import Conversation
from agentsh_proxy.shim.daemon import Answer
from agentsh_proxy.shim.refusals import BLOCKED, TOO_LONG, UNREADABLE
from agentsh_proxy.shim.way import Way
from shim_process import PING

from agentsh_net.core.links.shim_link import MAX_LINE


class FakeDaemon:
    """A daemon in the test's hands, and what a client and a server say to each other before it."""

    def __init__(
        self,
        *standing: str,
        closed: bool = False,
        results: bool = False,
        away: bool = False,
        reads: bool = False,
    ) -> None:
        self.standing = set(standing)
        self.closed, self.results, self.away, self.wants_all = closed, results, away, False
        self.reads = reads
        self.denied, self.denial = False, "no such server today"
        self.told: list[tuple[bytes, int]] = []
        self.asked: list[tuple[bytes, Callable[[Answer | None], None]]] = []
        self.takes_news = True
        self.unjudged = self.refused = 0
        self.talk = Conversation(self)  # type: ignore[arg-type] # as far as lines are concerned

    @property
    def lets_pass(self) -> bool:
        return bool(self.standing)

    def stands(self, *tools: str) -> bool:
        return self.standing.issuperset(tools)

    def stand(self, tool: str) -> None:
        self.standing.add(tool)

    def tell(self, lines: bytes, calls: int = 1) -> bool:
        if self.takes_news:
            self.told.append((lines, calls))
        return self.takes_news

    def ask(self, header: object, line: bytes, then: Callable[[Answer | None], None]) -> None:
        if self.away:
            then(None)
        else:
            self.asked.append((line, then))

    def client(self, data: bytes) -> bytes:
        """Say it as the client; return what goes on to the server."""
        return self._passed(self.talk.up, data)

    def server(self, data: bytes) -> bytes:
        """Say it as the server; return what goes on to the client."""
        return self._passed(self.talk.down, data)

    def _passed(self, way: Way, data: bytes) -> bytes:
        way.feed(data)
        passed = bytes(way.out)
        way.out.clear()
        return passed


def called(tool: str, id_: int, *, spaced: bool = False) -> bytes:
    message = {"jsonrpc": "2.0", "id": id_, "method": "tools/call", "params": {"name": tool, "arguments": {}}}
    return json.dumps(message, separators=None if spaced else (",", ":")).encode() + b"\n"


RESULT = b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"x"}]}}\n'


def test_a_burst_of_calls_whose_verdicts_stand_passes_and_is_told_of() -> None:
    daemon = FakeDaemon("t", "u")
    burst = called("t", 1) + called("u", 2)
    assert daemon.client(burst) == burst
    assert (daemon.told, daemon.asked) == ([(burst[:-1], 2)], [])


@pytest.mark.parametrize("spaced", [False, True])
def test_of_a_burst_a_call_whose_verdict_does_not_stand_waits_and_so_does_what_follows(spaced: bool) -> None:
    daemon = FakeDaemon("t")
    first, second, third = called("t", 1), called("u", 2, spaced=spaced), called("t", 3)
    assert daemon.client(first + second + third) == first
    assert [line for line, _ in daemon.asked] == [second[:-1]]
    assert [line for line, _ in daemon.told] == [first[:-1], third[:-1]]
    daemon.asked[0][1](Answer(passes=False))
    assert daemon.client(b"") == third


def test_calls_that_the_daemon_takes_no_news_of_are_asked_about() -> None:
    daemon = FakeDaemon("t")
    daemon.takes_news = False
    assert daemon.client(called("t", 1) + called("t", 2)) == b""
    assert len(daemon.asked) == 2


def test_a_verdict_that_stands_is_asked_for_once() -> None:
    daemon = FakeDaemon()
    assert daemon.client(called("t", 1)) == b""
    daemon.asked.pop()[1](Answer(passes=True, stands=True))
    assert daemon.client(called("t", 2)) == called("t", 1) + called("t", 2)
    assert (daemon.told, daemon.asked) == ([(called("t", 2)[:-1], 1)], [])


@pytest.mark.parametrize("standing", [["t"], []])
@pytest.mark.parametrize("results", [False, True])
def test_the_result_of_a_call_is_looked_at_where_the_policy_says_so(
    standing: list[str], results: bool
) -> None:
    daemon = FakeDaemon(*standing, results=results)
    daemon.client(called("t", 1))
    while daemon.asked:
        daemon.asked.pop()[1](Answer(passes=True))
    assert daemon.server(RESULT) == (b"" if results else RESULT)
    assert len(daemon.asked) == results


@pytest.mark.parametrize("results", [False, True])
def test_a_call_that_no_skim_reads_passes_by_its_verdict_too(results: bool) -> None:
    daemon = FakeDaemon("t", results=results)
    line = b" " + called("t", 1)
    assert daemon.client(line) == line
    assert (daemon.told, daemon.asked) == ([(line[:-1], 1)], [])
    assert daemon.server(RESULT) == (b"" if results else RESULT)


def test_calls_are_counted_that_pass_while_nobody_judges_them() -> None:
    daemon = FakeDaemon(away=True)
    lines = called("t", 1) + called("u", 2)
    assert daemon.client(lines) == lines
    assert (daemon.unjudged, daemon.refused) == (2, 0)
    closed = FakeDaemon(away=True, closed=True)
    assert closed.client(lines) == b""
    assert [json.loads(line)["id"] for line in bytes(closed.talk.down.out).splitlines()] == [1, 2]
    assert (closed.unjudged, closed.refused) == (0, 2)


@pytest.mark.parametrize("line", [b'{"method":"ping","method":"tools/call"}', b"\xff"])
def test_what_cannot_be_read_for_certain_does_not_pass_unjudged_where_nothing_may(line: bytes) -> None:
    assert FakeDaemon(away=True).client(line + b"\n") == line + b"\n"
    closed = FakeDaemon(away=True, closed=True)
    assert closed.client(line + b"\n") == b""
    assert json.loads(bytes(closed.talk.down.out))["error"]["code"] == UNREADABLE


def test_a_result_that_nobody_looked_at_does_not_pass_where_nothing_may() -> None:
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    answer = b'{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}\n'
    for closed in (False, True):
        daemon = FakeDaemon("t", results=True, closed=closed)
        daemon.client(called("t", 1) + json.dumps(listing).encode() + b"\n")
        daemon.away = True
        got = daemon.server(RESULT)
        assert got == RESULT if not closed else json.loads(got)["error"]["code"] == BLOCKED
        assert daemon.server(answer) == answer  # as definitions are, which pins hold


def long(text: bytes) -> bytes:
    return text + b" " * MAX_LINE + b"}\n"


CALLS, ANSWERS = b'{"id":7,"method":"x","params":{"result":1}', b'{"id":7,"result":{}'


def test_of_lines_past_the_bound_those_of_the_client_count_that_pass_unjudged() -> None:
    daemon = FakeDaemon(away=True)
    assert daemon.client(long(CALLS)[:-1]) == long(CALLS)[:-1]
    assert daemon.unjudged == 1
    assert daemon.server(long(ANSWERS)[:-1]) == long(ANSWERS)[:-1]
    assert daemon.unjudged == 1
    judged = FakeDaemon()
    judged.client(long(CALLS)[:-1])
    judged.asked.pop()[1](Answer(passes=True))
    assert (judged.client(b"\n"), judged.unjudged) == (long(CALLS), 0)


@pytest.mark.parametrize(("text", "to_client"), [(CALLS, True), (ANSWERS, False)])
def test_of_a_line_past_the_bound_that_is_refused_who_waits_for_an_answer_is_told(
    text: bytes, to_client: bool
) -> None:
    daemon = FakeDaemon(away=True, closed=True)
    daemon.talk.up.feed(long(text)[:-1])
    assert daemon.client(b"\n") == (b"" if to_client else error(7, TOO_LONG, UNREADABLE))
    assert daemon.server(b"") == (error(7, TOO_LONG, UNREADABLE) if to_client else b"")
    assert (daemon.unjudged, daemon.refused) == (0, 1)


READ = b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///x"}}\n'


def test_what_is_read_is_asked_about_where_a_rule_names_it() -> None:
    assert FakeDaemon().client(READ) == READ
    ways = (
        READ,
        b"[" + READ[:-1] + b"]\n",
        READ.replace(b"resources/r", b"Resources/R"),
        READ.replace(b'"id":1,', b""),
    )
    for line in ways:
        daemon = FakeDaemon(reads=True)
        assert daemon.client(line) == b""
        assert [asked for asked, _ in daemon.asked] == [line[:-1]]
    listing = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n'
    assert FakeDaemon(reads=True).client(listing) == listing
    away = FakeDaemon(reads=True, away=True, closed=True)
    assert away.client(READ) == b""
    assert json.loads(bytes(away.talk.down.out))["id"] == 1


def error(id_: int | str, text: str, code: int = BLOCKED) -> bytes:
    value = {"jsonrpc": "2.0", "id": id_, "error": {"code": code, "message": text}}
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def test_a_server_that_is_denied_leaves_no_request_unanswered_and_says_nothing_more() -> None:
    daemon = FakeDaemon("t", results=True)
    daemon.client(called("t", 1) + PING + b"\n" + called("u", 3))
    daemon.server(RESULT[:20])  # the beginning of an answer
    daemon.talk.up.out += b"decided, not written"
    daemon.denied = daemon.wants_all = True
    assert daemon.talk.deny() == 2  # the third waits for the daemon
    assert daemon.talk.waiting == 0
    assert daemon.server(b"") == error(1, daemon.denial) + error(2, daemon.denial)
    daemon.asked.pop()[1](Answer(passes=True))  # said before it heard of the change
    assert (daemon.server(b""), daemon.client(b"")) == (error(3, daemon.denial), b"")


def test_whatever_is_asked_of_a_denied_server_is_refused_though_nobody_judges() -> None:
    daemon = FakeDaemon(away=True)
    daemon.denied = daemon.wants_all = True
    daemon.talk.deny()
    assert daemon.client(PING + b"\n" + called("t", 1)) == b""
    assert daemon.server(b"") == error(2, daemon.denial) + error(1, daemon.denial)
    assert daemon.unjudged == 0
    daemon.denied = False
    daemon.client(PING + b"\n")
    assert b"start it anew" in daemon.server(b"")


def test_a_line_that_passed_in_part_when_its_server_was_denied_gets_an_end() -> None:
    daemon = FakeDaemon()
    daemon.talk.up.feed(PING + b"\n")
    daemon.talk.up.out.clear()
    daemon.talk.down.feed(b"x" * (MAX_LINE + 1))
    daemon.asked.pop()[1](Answer(passes=True))
    daemon.denied = True
    daemon.talk.deny()
    assert daemon.server(b"").endswith(b"x\n" + error(2, daemon.denial))


def test_one_that_waited_for_its_verdict_then_is_let_go() -> None:
    daemon = FakeDaemon()
    daemon.talk.down.feed(b"x" * (MAX_LINE + 1))
    daemon.denied = True
    daemon.talk.deny()
    daemon.asked.pop()[1](Answer(passes=True))
    assert daemon.server(b"") == b"" and daemon.talk.down.waiting == 0


@pytest.mark.parametrize("closed", [False, True])
def test_until_the_daemon_has_said_whether_the_server_is_denied_every_line_is_asked_about(
    closed: bool,
) -> None:
    daemon = FakeDaemon(closed=closed)
    daemon.wants_all = True
    assert daemon.client(PING + b"\n") == b""
    daemon.asked.pop()[1](None)  # it ended before it said so
    assert daemon.client(b"") == PING + b"\n"
