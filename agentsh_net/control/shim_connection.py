"""One shim at its socket: questions in, answers out, in order, and what its calls were put on record meanwhile.

It bounds what one user can make the daemon hold and do. What the questions mean is the service's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, Protocol, cast

from agentsh_net.access import group_id
from agentsh_net.control.peer import Peer, daemon_uid, peer_of
from agentsh_net.control.shim_allowance import Allowance
from agentsh_net.core.links.shim_link import CALLED, MAX_PAYLOAD, WAIT, Frames, LinkError, frame

MAX_HELD: Final = 2 * MAX_PAYLOAD  # bytes that all shims of one user may have waiting here
# Seconds in which news that nobody waits for gathers.
# Who asked a moment ago may ask again, and that must not wait so long.
REST: Final = 0.02
QUIET: Final = 0.1  # seconds without a question
SHORT_REST: Final = 0.002
SLICE: Final = 0.005  # seconds of work for one shim before others get their turn
KEEP_WAITING: Final = 1.0  # seconds between two signs of life to a shim that has to wait
_TOGETHER: Final = 1 << 15  # bytes of news in a row that are taken as one, some 300 calls or 5 ms of work
# Chunks, 64 MiB: many times what a socket may hold (net.core.wmem_max), and an end of a flood.
_LEFT: Final = 256
CHUNK: Final = 1 << 18  # bytes
_OPENING: Final = 10.0  # seconds a connection may take to say whom it is in front of
# What waits here of one shim, a fifth of a second of work; past it, it waits in the socket.
_READ_AHEAD: Final = 256  # questions
_READ_AHEAD_BYTES: Final = 1 << 20  # of whole questions, some 10,000 calls


class Handler(Protocol):
    """What answers one shim."""

    def opened(self) -> bytes | Awaitable[bytes]:
        """Return the answer to its opening."""

    def revoked(self) -> bytes:
        """Return the news that the policy is another."""

    def answer(self, header: Mapping[str, Any], payload: bytes) -> bytes | Awaitable[bytes]:
        """Return the answer to a question (empty: none), or what to await for it. Raises LinkError for one that is none."""

    def failed(self, header: Mapping[str, Any], payload: bytes) -> bytes:
        """Return the answer to a question that `answer` failed on, which is a bug. Raises LinkError where it has none."""

    def noted(self, calls: int) -> bytes:
        """Return the news that so many calls are on record (empty: the shim does not care)."""


class Service(Protocol):
    """Who lets shims in."""

    def begin(self, peer: Peer, opening: Mapping[str, Any], *, trusted: bool) -> Handler:
        """Let one in. Raises LinkError."""

    def end(self, handler: Any) -> None:
        """Forget it."""

    def takes_news(self) -> bool:
        """Say whether there is room on record for more calls."""


class Front(Protocol):
    """Where connections come in."""

    @property
    def space(self) -> memoryview:
        """Where connections read, one after the other."""

    def admit(self, connection: ShimConnection, peer: Peer, now: float) -> Allowance | None:
        """Return what a user may ask for, or None where there are too many connections already."""

    def release(self, connection: ShimConnection) -> None:
        """Forget a connection."""


class ShimConnection(asyncio.BufferedProtocol):
    """One shim: questions in, answers out, in order."""

    def __init__(self, server: Front, service: Service, on_bug: Callable[[BaseException], None]) -> None:
        self._server = server
        self._service = service
        self._on_bug = on_bug
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._questions: deque[tuple[dict[str, Any], bytes]] = deque()
        self._task: asyncio.Task[None] | None = None
        self._alive: asyncio.TimerHandle  # while there is one
        self._timer: asyncio.TimerHandle | None = None
        self._resting = False
        self._full = False  # the shim does not read its answers
        self._gone = False  # the connection is lost; what it told is not all on record
        self._ended = False  # the shim says nothing more
        self._closed = False
        self._rest = SHORT_REST
        self._asked_at = 0.0  # when the last question was answered
        self._noted = 0  # calls on record that it was not told of
        self._held = 0
        self._user: Allowance | None = None
        self._handler: Handler | None = None
        self._peer: Peer
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let it in, if its user has not too many already."""
        self._transport = cast("asyncio.Transport", transport)
        self._peer = peer_of(cast("socket.socket", transport.get_extra_info("socket")))
        self._user = self._server.admit(self, self._peer, self._loop.time())
        if self._user is None:
            self.abort()
        else:
            # Until it has said whom it is in front of.
            self._timer = self._loop.call_later(_OPENING, self.abort)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """Put on record what was told and not read yet."""
        if self._user is None:
            self._server.release(self)
            return
        self._read_the_rest()
        self._gone = True
        self._clear_timer()
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._resume()

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        """Return where asyncio reads."""
        return self._server.space

    def buffer_updated(self, nbytes: int) -> None:
        """Take what came."""
        try:
            self._questions.extend(self._frames.feed(bytes(self._server.space[:nbytes])))
            self._work()
        except LinkError:
            self.abort()
        else:
            self._count()

    def eof_received(self) -> bool:
        """Keep the connection while something that was told is not on record."""
        self._ended = True
        return bool(self._questions)

    def pause_writing(self) -> None:
        """Answer no more for now."""
        self._full = True

    def resume_writing(self) -> None:
        """Go on."""
        self._full = False
        self._resume()

    def revoke(self) -> None:
        """Tell the shim that no verdict stands."""
        if self._handler is not None:
            self._transport.write(self._handler.revoked())

    def abort(self) -> None:
        """End the connection; the shim follows fail_closed."""
        if self._gone:
            self._questions.clear()
            self._close()
        else:
            self._transport.abort()

    async def record_all(self, until: float) -> None:
        """Put on record what was told and waits here, for the daemon ends; after `until` what has no room there is lost, and counted."""
        self._clear_timer()
        self._full = True  # nothing is answered any more
        self._transport.pause_reading()
        self._read_the_rest()
        while self._questions:
            if not self._service.takes_news() and self._loop.time() < until:
                await asyncio.sleep(REST)
                continue  # there may be none left
            self._gather()
            question = self._questions.popleft()
            if _calls(question) and self._handler is not None:
                with contextlib.suppress(LinkError):
                    self._handler.answer(*question)

    def _read_the_rest(self) -> None:
        """Take what a shim that is gone had sent: the kernel says first that it is gone where it left answers unread."""
        if self._gone:
            return
        with self._transport.get_extra_info("socket").dup() as rest, contextlib.suppress(OSError, LinkError):
            rest.setblocking(False)
            for _ in range(_LEFT):
                data = rest.recv(CHUNK)
                if not data:
                    return
                self._questions.extend(self._frames.feed(data))

    def _resume(self) -> None:
        self._clear_timer()
        self._resting = False
        try:
            self._work()
        except LinkError:
            self.abort()
        else:
            self._count()

    def _clear_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _work(self) -> None:
        """Answer what can be answered now. Raises LinkError."""
        answers: list[bytes] = []
        until = self._loop.time() + SLICE
        while self._questions and self._task is None and (self._gone or not self._full):
            self._gather()
            calls = _calls(self._questions[0])
            if self._gone and not calls:
                self._questions.popleft()  # nobody waits for the answer
                continue
            delay = self._delay(calls, until)
            if delay is not None:
                answers += [frame({"do": WAIT})] if delay else []
                self._timer = self._timer or self._loop.call_later(min(delay, KEEP_WAITING), self._resume)
                break
            header, payload = self._questions.popleft()
            try:
                answer = self._answer(header, payload)
            except LinkError:
                raise
            except Exception as error:  # noqa: BLE001 - a bug of ours
                answer = self._failed(header, payload, error)
            if isinstance(answer, bytes):
                answers.append(answer)
                self._note(calls)
            else:
                self._note(0)
                self._task = self._loop.create_task(self._later(answer, header, payload))
                self._task.add_done_callback(partial(_give_up, answer))
        self._say(answers)
        if self._resting:
            self._timer = self._timer or self._loop.call_later(self._rest, self._resume)

    def _gather(self) -> None:
        """Make one of the news that wait in a row: read one by one they would cost three times as much."""
        size, row = 0, []
        while self._questions and size <= _TOGETHER and _calls(self._questions[0]):
            row.append(self._questions.popleft())
            size += len(row[-1][1])
        if row:
            self._questions.appendleft((row[0][0], b"\n".join(payload for _, payload in row)))

    def _note(self, calls: int) -> None:
        """Remember what was answered: news of so many calls, or a question."""
        now = self._loop.time()
        if not calls:
            self._asked_at = now
        self._noted += calls
        self._resting = bool(calls)
        self._rest = REST if now - self._asked_at > QUIET else SHORT_REST

    def _delay(self, calls: int, until: float) -> float | None:
        """Charge the next question; return in how many seconds it has its turn, None for at once."""
        assert self._user is not None  # noqa: S101 - no data arrives before connection_made
        now = self._loop.time()
        if now > until:
            return 0.0
        if calls and not self._service.takes_news():
            return REST
        return self._user.delay(now, calls or 1) or None

    def _say(self, answers: list[bytes]) -> None:
        if self._noted and self._handler is not None:
            answers.append(self._handler.noted(self._noted))
            self._noted = 0
        said = b"".join(answers)
        if said and not self._gone:
            self._transport.write(said)

    def _answer(self, header: dict[str, Any], payload: bytes) -> bytes | Awaitable[bytes]:
        if self._handler is not None:
            return self._handler.answer(header, payload)
        self._clear_timer()
        trusted = self._peer.may_ask(daemon_uid(), group_id())
        self._handler = self._service.begin(self._peer, header, trusted=trusted)
        return self._handler.opened()

    async def _later(self, answer: Awaitable[bytes], header: dict[str, Any], payload: bytes) -> None:
        self._alive = self._loop.call_later(KEEP_WAITING, self._say_alive)
        try:
            try:
                said = await answer
            except Exception as error:  # noqa: BLE001 - a bug of ours
                said = self._failed(header, payload, error)
        except LinkError:
            self.abort()
            return
        finally:
            self._alive.cancel()
        self._transport.write(said)
        self._task = None
        self._resume()

    def _say_alive(self) -> None:
        """Have a shim wait on: what takes long to read must not pass because it does."""
        self._transport.write(frame({"do": WAIT}))
        self._alive = self._loop.call_later(KEEP_WAITING, self._say_alive)

    def _failed(self, header: dict[str, Any], payload: bytes, error: Exception) -> bytes:
        """Tell of a bug, and refuse the line that it is about: nobody may have it pass by making us fail. Raises LinkError."""
        self._on_bug(error)
        if self._handler is None:
            raise LinkError("the opening failed") from error
        try:
            return self._handler.failed(header, payload)
        except Exception as another:
            raise LinkError("there is no answer to it") from another

    def _count(self) -> None:
        """Keep what waits here within the user's bounds: read no further, and past the user's share hang up."""
        assert self._user is not None  # noqa: S101 - as in _delay
        whole = sum(len(payload) for _, payload in self._questions)
        held = self._frames.waiting + whole
        self._user.held += held - self._held
        self._held = held
        if self._gone:
            if not self._questions:
                self._close()
        elif self._ended:
            if not self._questions and self._task is None:
                self._transport.close()
        elif self._user.held > MAX_HELD:
            self.abort()
        elif self._resting or len(self._questions) > _READ_AHEAD or whole > _READ_AHEAD_BYTES:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _close(self) -> None:
        """Forget the shim: it is gone, and all it told is on record."""
        if self._closed:
            return
        self._closed = True
        self._clear_timer()
        self._server.release(self)
        if self._user is not None:
            self._user.connections -= 1
            self._user.held -= self._held
            self._held = 0
        if self._handler is not None:
            self._service.end(self._handler)


def _give_up(answer: Awaitable[bytes], _: asyncio.Task[None]) -> None:
    """Close an answer that nobody awaits: its task was cancelled before it began."""
    if isinstance(answer, Coroutine):
        answer.close()


def _calls(question: tuple[dict[str, Any], bytes]) -> int:
    """Return of how many calls that passed a frame tells; 0 for a question."""
    header, payload = question
    return payload.count(b"\n") + 1 if header.get("ask") == CALLED else 0
