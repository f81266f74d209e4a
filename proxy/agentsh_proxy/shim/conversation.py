"""What a client and a server say to each other: each line passes, waits for who decides, or is answered in the other's place.

Where bytes come from and go to is the relay's business. Light on purpose (see `shim`).
"""

from __future__ import annotations

from agentsh_net.core.links.shim_link import CLIENT, LONG, SERVER
from agentsh_net.core.mcp import bursts
from agentsh_net.core.mcp.glance import INSPECTED, id_of, plain_call
from agentsh_net.core.mcp.skim import Skim
from agentsh_proxy.shim import refusals
from agentsh_proxy.shim.daemon import Answer, Daemon
from agentsh_proxy.shim.traffic import Traffic, judged, read
from agentsh_proxy.shim.way import Held, Way

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from typing import Any


class Conversation:
    """Lines of both sides. `up` is the way to the server, `down` the one to the client."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._skim = Skim()
        self._traffic = Traffic(self._skim)
        self._denied = False  # there is no server: policy denies it
        self.up = Way(self._from_client, self._calls, self._long_from_client, self._lost_from_client)
        self.down = Way(self._from_server, self._results, self._long_from_server, self._lost_from_server)

    @property
    def waiting(self) -> int:
        """How many requests of the client wait for their answers."""
        return self._traffic.waiting

    def deny(self) -> int:
        """Have no server any more: each request that waits for it gets the policy's error; return how many did."""
        self._denied = True
        self.up.out.clear()
        self.down.stop()
        waiting = self._traffic.abandon()
        for id_ in waiting:
            self.down.insert(refusals.error(id_, refusals.BLOCKED, self._daemon.denial))
        return len(waiting)

    def _calls(self, lines: bytes) -> bool:
        """Let calls pass whose verdicts stand, where there is nothing else on the lines."""
        found = bursts.calls(_text(lines)) if self._daemon.lets_pass else []
        if not found:
            return False
        tools = [groups[1] for groups in found]
        if not self._daemon.stands(*tools) or not self._daemon.tell(lines[:-1], len(found)):
            return False
        self._traffic.called(bursts.ids_of(found), tools, results=self._daemon.results)
        return True

    def _results(self, lines: bytes) -> bool:
        """Let answers pass that nobody has to look at, where there is nothing else on the lines."""
        found = bursts.results(_text(lines))
        return bool(found) and self._traffic.settle(found)

    def _from_client(self, line: bytes) -> None:
        every = self._daemon.wants_all
        seen = None if every else self._skim.of_client(line)
        if seen is not None:
            id_, tool = seen
            if not tool or (self._daemon.stands(tool) and self._daemon.tell(line)):
                self._traffic.skimmed(id_, tool, results=self._daemon.results)
                self.up.forward(line)
                return
        found = read(line) if line.strip() else []
        if found is not None and not judged(found, reading=self._daemon.reads) and not every:
            self._traffic.sent(found, results=self._daemon.results)
            self.up.forward(line)
            return
        found = found or []
        tool = plain_call(found)
        if tool and self._daemon.stands(tool) and self._daemon.tell(line):
            self._traffic.sent(found, results=self._daemon.results)
            self.up.forward(line)
            return
        held = self.up.hold(line)

        def decided(answer: Answer | None) -> None:
            answer = self._settled(answer, line, found)
            if answer.stands:
                self._daemon.stand(tool)
            forward = line if answer.passes else answer.forward
            if forward is not None:
                self._traffic.sent(found, results=self._daemon.results)
            self.up.release(held, forward)
            for reply in answer.replies:
                self.down.insert(reply)

        self._daemon.ask({"ask": CLIENT}, line, decided)

    def _settled(self, answer: Answer | None, line: bytes, found: list[dict[str, Any]]) -> Answer:
        """Return what becomes of a client's line: as the daemon decided, unless there is no server for it, or nobody decided."""
        if self._denied and (answer is None or answer.passes or answer.forward is not None):
            text = self._daemon.denial if self._daemon.denied else refusals.AGAIN
            return Answer(passes=False, replies=tuple(refusals.of_line(line, text)))
        if answer is not None:
            return answer
        if self._daemon.closed and (not found or judged(found, reading=self._daemon.reads)):
            self._daemon.refused += refusals.count_calls(line)
            return Answer(passes=False, replies=tuple(refusals.of_line(line)))
        self._daemon.unjudged += refusals.count_calls(line)
        return Answer(passes=True)

    def _from_server(self, line: bytes) -> None:
        why = self._traffic.matters(line, results=self._daemon.results) if line.strip() else None
        if why is None:
            self.down.forward(line)
            return
        held = self.down.hold(line)

        def decided(answer: Answer | None) -> None:
            if answer is None and self._daemon.closed:
                results = [id_ for _, id_, method, *_ in why["asked"] if method in INSPECTED]
                forward, replies = refusals.of_server(line, results, notes=self._daemon.results)
                answer = Answer(passes=False, forward=forward, replies=tuple(replies))
            forward = line if answer is None or answer.passes else answer.forward
            self.down.release(held, forward)
            for reply in answer.replies if answer is not None else ():
                self.up.insert(reply)

        self._daemon.ask({"ask": SERVER, **why}, line, decided)

    def _long_from_client(self, held: Held) -> None:
        self._long("client", self.up, held)

    def _long_from_server(self, held: Held) -> None:
        self._long("server", self.down, held)

    def _long(self, sender: str, way: Way, held: Held) -> None:
        def decided(answer: Answer | None) -> None:
            if answer is None and self._daemon.closed:
                self._daemon.refused += sender == "client"
            elif answer is None:
                self._daemon.unjudged += sender == "client"
            passes = answer.passes if answer is not None else not self._daemon.closed
            if passes and not self._denied:
                way.release_long(held)
            else:
                way.cut(held)

        self._daemon.ask({"ask": LONG, "sender": sender}, b"", decided)

    def _lost_from_client(self, head: bytes, tail: bytes) -> None:
        answers = b'"result"' in head and b'"method"' not in head + tail
        self._refuse_long(self.up if answers else self.down, head, tail)

    def _lost_from_server(self, head: bytes, tail: bytes) -> None:
        self._refuse_long(self.down, head, tail)

    def _refuse_long(self, way: Way, head: bytes, tail: bytes) -> None:
        """Tell whoever waits for an answer: to a message of the client, the server's or, where it asked for that one, the client's."""
        way.insert(refusals.error(id_of(head, tail), refusals.UNREADABLE, refusals.TOO_LONG))


def _text(lines: bytes) -> str:
    """Return what a burst says; nothing for one that is to be read line by line."""
    if len(lines) > bursts.MAX_BURST:
        return ""
    try:
        return lines.decode()
    except UnicodeDecodeError:
        return ""
