"""The shim's line to the daemon: one connection, questions answered in their order, and what happens while nobody answers.

What is asked and what an answer leads to is not its business. Light on purpose (see `shim`).
"""

from __future__ import annotations

import json
import select
import socket
from collections import deque

from agentsh_net.core.links.shim_link import (
    EDIT,
    MAX_HEADER,
    NOTED,
    OPENED,
    PASS,
    REVOKE,
    WAIT,
    Frames,
    LinkError,
    frame,
    told,
)

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Final

# Seconds without a sign of life while a question waits: far beyond a reload or a listing of thousands of tools.
PATIENCE: Final = 10.0
# Seconds until one is asked again that hangs up on us at once: it has as many shims as it takes.
RETRY: Final = 0.2
# Seconds between tries while nobody asks anything: the daemon that comes back may deny the server.
LOOK: Final = 2.0
_READ: Final = 1 << 16
# Bytes of news that wait while the daemon does other things; Linux grants twice what net.core.wmem_max says.
_BUFFER: Final = 1 << 20
MAX_STANDING: Final = 10_000  # tools; as many as a listing may have


class Answer:
    """What the daemon decided about a line. `passes`: it goes on as it is; else `forward` does (None: nothing).

    `stands`: so does every call of its tool, until the daemon revokes it.
    """

    __slots__ = ("forward", "passes", "replies", "stands")

    def __init__(
        self,
        *,
        passes: bool,
        forward: bytes | None = None,
        replies: tuple[bytes, ...] = (),
        stands: bool = False,
    ) -> None:
        self.passes = passes
        self.stands = stands
        self.forward = forward
        self.replies = replies


class Daemon:
    """The daemon, there or not. `closed` is what its policy says to do while it is not."""

    def __init__(
        self,
        path: str,
        opening: dict[str, Any],
        *,
        closed: bool,
        now: Callable[[], float],
        say: Callable[[str], None],
    ) -> None:
        self._path = path
        self._opening = opening
        self._closed = closed
        self._now = now
        self.say = say
        self._socket: socket.socket | None = None
        self._heard = select.poll()  # what it said, without waiting
        self.fd: int | None = None  # the descriptor to wait for, None while the daemon is away
        self._frames = Frames()
        self._out = bytearray()
        self._asks: deque[Callable[[Answer | None], None]] = deque()
        self._deadline = 0.0
        self._next_try = 0.0
        self._look = 0.0  # when it is looked for again, though nobody asks anything
        self._told = False  # that the daemon is away
        self._undeclared = False  # that it does not know the server
        self._standing: set[str] = set()  # tools whose calls pass until the daemon revokes it
        self._news: list[bytes] = []  # calls that pass by that, to be told before the server sees them
        self._untold = 0  # how many they are
        self._several = False  # it takes them together
        self._unnoted = 0  # calls it was told of and did not put on record yet
        self._opening_sent = False  # and not answered yet
        self.results = False  # results of calls are to be looked at
        self.reads = closed  # so are requests to read; as long as nobody says, they may be
        self.pins_binary = False  # the program that is started has to be the one that is trusted
        self.denied = False  # the server is, whatever it is
        self.denial = "[agentsh] the server is denied by policy"  # what its client is told then
        self.refusal = ""  # why it may not be started
        self.unjudged = 0  # calls that passed while it was away
        self.refused = 0  # calls that did not, because nothing passes then
        self.unrecorded = 0  # calls that it was told of and perhaps forgot, because it ended

    @property
    def closed(self) -> bool:
        """Say whether nothing passes while the daemon is away."""
        return self._closed

    @property
    def wants_all(self) -> bool:
        """Say whether every line of the client is asked about: the server is denied, or nobody said yet that it is not."""
        return self.denied or self._opening_sent

    @property
    def lets_pass(self) -> bool:
        """Say whether calls of any tool pass without a question."""
        return bool(self._standing)

    @property
    def wants_to_write(self) -> bool:
        """Say whether something waits to be sent."""
        return bool(self._out)

    @property
    def behind(self) -> bool:
        """Say whether calls that it was told of may not have left yet."""
        return bool(self._out and self._unnoted)

    @property
    def deadline(self) -> float | None:
        """When the daemon counts as away, unless it answers or reads before (None while nothing waits for it), or is looked for."""
        if self.fd is None:
            return self._look
        return self._deadline if self._asks or self._out else None

    def connect(self) -> bool:
        """Begin the conversation if there is none; say whether there is one now. Never waits."""
        if self._socket is not None:
            return True
        if self._now() < self._next_try:
            return False
        self._look = self._now() + LOOK
        connection = socket.socket(
            socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK
        )
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        try:
            connection.connect(self._path)
        except OSError as error:
            connection.close()
            self._tell(f"no daemon answers at {self._path} ({error.strerror})")
            return False
        self._socket, self.fd, self._told = connection, connection.fileno(), False
        self._heard.register(self.fd, select.POLLIN)
        self._frames = Frames()
        missed = {"unjudged": self.unjudged, "refused": self.refused, "unrecorded": self.unrecorded}
        self.unjudged = self.refused = self.unrecorded = 0
        self._opening_sent = True
        self._send(frame(self._opening | missed | {"counts": True}), _ignore)
        return self._socket is not None

    def opened(self) -> bool:
        """Wait, before there is anything else to do, until the opening is answered; say whether it was."""
        self.wait(lambda: not self._opening_sent)
        return self.fd is not None

    def wait(self, over: Callable[[], bool]) -> None:
        """Hear nobody but the daemon until something is over, or there is no daemon any more."""
        while (fd := self.fd) is not None and not over():
            waiting = select.poll()
            waiting.register(fd, select.POLLIN | (select.POLLOUT if self._out else 0))
            waiting.poll(max(0.0, (self._deadline - self._now()) * 1000 + 1))
            if self._out:
                self.write()
            if self.fd is not None:
                self.read()
            self.expire()

    def reopen(self, facts: dict[str, Any]) -> None:
        """Begin the conversation anew with an opening that says more."""
        self._opening = self._opening | facts
        self._hang_up()
        self._next_try = 0.0
        self._out.clear()
        self._asks.clear()
        self.connect()

    def stand(self, tool: str) -> None:
        """Remember that calls of a tool pass."""
        if len(self._standing) < MAX_STANDING:
            self._standing.add(tool)

    def stands(self, *tools: str) -> bool:
        """Say whether calls of tools pass, as far as was heard."""
        return self._standing.issuperset(tools)

    def hear(self) -> None:
        """Take what the daemon says by now, where there is one: what is read of the client after that is decided by it."""
        if self.fd is None:
            self.connect()
        elif self._standing and self._heard.poll(0):
            self.read()

    def tell(self, lines: bytes, calls: int = 1) -> bool:
        """Tell the daemon, with the next `flush`, of calls that pass, a line each; False where it does not take news at once."""
        if self._socket is None or self._out or (calls > 1 and not self._several):
            return False
        self._news.append(lines)
        self._untold += calls
        return True

    def report(self, facts: dict[str, Any]) -> None:
        """Tell the daemon of something that wants no answer, where there is one."""
        if self._socket is None:
            return
        if not (self._asks or self._out):
            self._deadline = self._now() + PATIENCE
        self._out += frame(facts)
        self.write()

    def flush(self) -> bool:
        """Send what is to be told; False where not all of it could be, and the server must not see those calls yet."""
        if self._news:
            news, self._news = self._news, []
            self._unnoted += self._untold
            self._untold = 0
            together = (b"\n".join(news) if len(news) > 1 else news[0],) if self._several else news
            for lines in together:
                self._out += told(lines)
            self.write()
            if self._out and not self._asks:
                self._deadline = self._now() + PATIENCE
        return not self.behind

    def ask(self, header: dict[str, Any], line: bytes, then: Callable[[Answer | None], None]) -> None:
        """Ask about a line; `then` gets the answer, or None, perhaps at once, where there is nobody to answer."""
        question = frame(header, line)
        if len(question) - len(line) > MAX_HEADER:
            then(Answer(passes=False))  # it would hang up on us, and the line would pass
        elif self.connect():
            self._send(question, then)
        else:
            then(None)

    def read(self) -> None:
        """Take what the daemon sent."""
        assert self._socket is not None  # noqa: S101 - only asked while there is a descriptor
        try:
            data = self._socket.recv(_READ)
            if not data:
                self._lose("the daemon hung up")
                return
            self._deadline = self._now() + PATIENCE
            for header, payload in self._frames.feed(data):
                self._answered(header, payload)
        except BlockingIOError:
            return
        except (OSError, LinkError, ValueError, KeyError, TypeError) as error:
            self._lose(f"the line to the daemon broke: {error}")

    def write(self) -> None:
        """Send what waits, as much as goes now."""
        assert self._socket is not None  # noqa: S101 - as in read
        try:
            while self._out:
                sent = self._socket.send(self._out)
                if sent == len(self._out):
                    self._out.clear()
                else:
                    del self._out[:sent]
        except BlockingIOError:
            return
        except OSError as error:
            self._lose(f"the line to the daemon broke: {error.strerror}")

    def expire(self) -> None:
        """Give up on a daemon that does not answer in time; look for one that is away."""
        if self.fd is None:
            if self._now() >= self._look:
                self.connect()
        elif (self._asks or self._out) and self._now() >= self._deadline:
            self._lose(f"the daemon did not answer within {PATIENCE:g} s")

    def _send(self, data: bytes, then: Callable[[Answer | None], None]) -> None:
        self.flush()
        if self._socket is None:
            then(None)
            return
        if not self._asks:
            self._deadline = self._now() + PATIENCE
        self._asks.append(then)
        self._out += data
        self.write()

    def _answered(self, header: dict[str, Any], payload: bytes) -> None:
        do = header.get("do")
        if do == WAIT:
            return
        if do == REVOKE:
            self._heed(header)
            self._standing.clear()
            return
        if do == NOTED:
            self._unnoted = max(0, self._unnoted - int(header["calls"]))
            return
        if not self._asks or do not in {PASS, EDIT, OPENED}:
            raise LinkError("an answer to no question")
        self._heed(header)
        if do == OPENED:
            self._opening_sent = False
            self._several = header.get("several") is True
            self.pins_binary = header.get("pin_binary") is True
            self.refusal = payload.decode("utf-8", "replace")
        if do == OPENED and header.get("declared") is False and not self._undeclared:
            self._undeclared = True
            self.say(
                f"the policy declares no server {self._opening['server']!r}: it is judged as an unknown one"
            )
        answer = Answer(passes=True, stands=header.get("stands") is True)
        if do == EDIT:
            edit = json.loads(payload) if payload else {"forward": None, "replies": []}
            forward, replies = edit["forward"], tuple(reply.encode() for reply in edit["replies"])
            answer = Answer(
                passes=False, forward=None if forward is None else forward.encode(), replies=replies
            )
        self._asks.popleft()(answer)

    def _heed(self, header: dict[str, Any]) -> None:
        """Take what every frame says of the policy in force."""
        self._closed = header.get("closed") is True
        self.results = header.get("results") is True
        self.reads = header.get("reads") is True
        self.denied = header.get("denied") is True
        self.denial = str(header.get("denial", self.denial))

    def _lose(self, reason: str) -> None:
        """Let go of the daemon; who waits for an answer is told that there is none."""
        self._hang_up()
        self._next_try = self._now() + (RETRY if self._opening_sent else 0.0)
        self._opening_sent = False
        self._out.clear()
        self.unrecorded += (self._unnoted if self._several else 0) + self._untold
        self._unnoted = self._untold = 0
        self._news = []
        self._standing.clear()
        self._look = self._now() + LOOK
        self._tell(reason)
        asks, self._asks = self._asks, deque()
        for then in asks:
            then(None)

    def _hang_up(self) -> None:
        if self._socket is not None:
            self._heard.unregister(self._socket)
            self._socket.close()
        self._socket = self.fd = None

    def _tell(self, reason: str) -> None:
        if not self._told:
            self._told = True
            happens = "blocked (fail_closed)" if self._closed else "let through UNJUDGED"
            happens = "blocked (the server is denied)" if self.denied else happens
            self.say(f"{reason}: calls are {happens} until it does")


def _ignore(answer: Answer | None) -> None:
    """Take the answer to an opening: what it says was noted."""
