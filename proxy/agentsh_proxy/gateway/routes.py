"""Which answer of ours a message of a server belongs to, in one session: by the request it answers, the progress it tells, or the newest.

What is sent is kept for a client that comes back. What may pass, and how it is sent, is not its business.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from agentsh_net.core.mcp.jsonrpc import Body, Id, Notification, Request
from agentsh_proxy.gateway.review import Passed, Taken
from agentsh_proxy.gateway.stream import GENERAL, Kept, Stream

MAX_STREAMS: Final = 64  # of one session that nobody reads and that still wait for answers


class Routes:
    """The streams of one session. `forget` is told which requests nobody will wait for any more."""

    def __init__(self, forget: Callable[[Collection[Id]], None]) -> None:
        self._forget_ids = forget
        self._kept = Kept()
        self._number = GENERAL
        self._streams: dict[int, Stream] = {}
        self._by_id: dict[Id, Stream] = {}
        self._by_token: dict[Id, Stream] = {}

    @property
    def busy(self) -> bool:
        """Say whether somebody reads a stream or waits for an answer."""
        return any(stream.attached for stream in self._streams.values())

    @property
    def ids(self) -> tuple[Id, ...]:
        """The requests that wait for their answers."""
        return tuple(self._by_id)

    def first_used(self, ids: Collection[Id]) -> Id | None:
        """Return the first of these ids that is that of a request under way."""
        for id_ in ids:
            if id_ in self._by_id:
                return id_
        return None

    def begin(self, taken: Taken) -> Stream:
        """Return the stream that the answers to new requests go to."""
        self._number += 1
        stream = Stream(self._number, taken.ids)
        self._streams[stream.number] = stream
        self._by_id.update(dict.fromkeys(taken.ids, stream))
        stream.tokens = _tokens(taken.body)
        self._by_token.update(dict.fromkeys(stream.tokens, stream))
        return stream

    def listen(self, resumed: tuple[int, int] | None) -> tuple[Stream | None, int, list[tuple[int, bytes]]]:
        """Return the stream that a GET reads (None: somebody does), the number after which it reads, and what it missed."""
        number, seq = resumed if resumed is not None else (GENERAL, self._kept.seq)
        stream = self._streams.get(number)
        if stream is not None and stream.attached:
            return None, seq, []
        missed = self._kept.since(number, seq)
        if stream is None:
            stream = Stream(number)
            if number == GENERAL:
                self._streams[GENERAL] = stream
        stream.attach()
        return stream, seq, missed

    def carry(self, passed: Passed) -> None:
        """Put what may go on of a message where it belongs."""
        if passed.forward is None:
            return
        stream = self._stream_for(passed)
        if stream is None:
            self._kept.add(GENERAL, passed.forward)
            return
        for id_ in passed.answered:
            self._by_id.pop(id_, None)
            if id_ in stream.ids:
                stream.ids.remove(id_)
        if stream.whole is None or stream.ids or stream.waiting:
            self.put(stream, passed.forward)
        else:
            stream.whole(passed.forward)  # not kept: it has no number by which anybody could ask for it again

    def put(self, stream: Stream, message: bytes) -> None:
        """Put a message on a stream."""
        stream.put(self._kept.add(stream.number, message), message)

    def leave(self, stream: Stream) -> None:
        """Take note that nobody reads a stream any more; its answers are kept where there are some to come."""
        stream.detach()
        if not stream.ids:
            self.forget(stream)
        if len(self._streams) <= MAX_STREAMS:
            return
        lost = [s for s in self._streams.values() if not s.attached and s.number != GENERAL]
        for old in lost[:-MAX_STREAMS]:
            self._forget_ids(old.ids)
            self.forget(old)

    def forget(self, stream: Stream) -> None:
        """Take note that nobody waits for what a stream was to get."""
        self._streams.pop(stream.number, None)
        for id_ in stream.ids:
            self._by_id.pop(id_, None)
        for token in stream.tokens:
            self._by_token.pop(token, None)
        stream.ids = []

    def wake(self) -> None:
        """Let everybody who waits look again."""
        for stream in tuple(self._streams.values()):
            stream.wake()

    def _stream_for(self, passed: Passed) -> Stream | None:
        """Return the stream that a message belongs to, as far as it says; else the newest, else that of a GET."""
        for id_ in passed.answered:
            if id_ in self._by_id:
                return self._by_id[id_]
        token = progress_token(passed.body)
        if token is not None and token in self._by_token:
            return self._by_token[token]
        if passed.body is None or any(isinstance(m, Request) for m in passed.body.messages):
            waiting = [s for s in self._streams.values() if s.attached and s.ids]
            if waiting:
                return waiting[-1]
        general = self._streams.get(GENERAL)
        if general is not None:
            return general
        waiting = [s for s in self._streams.values() if s.attached and s.ids]
        return waiting[-1] if waiting else None


def progress_token(body: Body | None) -> Id | None:
    """Return what a notification of progress says it is about."""
    message = body.messages[0] if body is not None else None
    if not isinstance(message, Notification) or message.method != "notifications/progress":
        return None
    return _token(message.params)


def token_of(request: Request) -> Id | None:
    """Return what a request wants its progress told under."""
    return _token(request.params.get("_meta")) if isinstance(request.params, Mapping) else None


def _tokens(body: Body | None) -> list[Id]:
    requests = [m for m in body.messages if isinstance(m, Request)] if body is not None else []
    return [token for token in map(token_of, requests) if token is not None]


def _token(holder: Any) -> Id | None:
    token = holder.get("progressToken") if isinstance(holder, Mapping) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None
