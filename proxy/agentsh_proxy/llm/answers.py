"""Answers that are inspected: streamed through a dialect's machine, or read whole first.

Sans IO: heads and body bytes go in, bytes for the client come out. Each answer is one object, used once. Which it is, is
`choosing`'s business.
"""

from __future__ import annotations

from agentsh_net.core.dialects.base import Step, Stream
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import ResponseHead, forwarded_response
from agentsh_proxy.chunks import LAST_CHUNK, chunk
from agentsh_proxy.inflating import Decoder, inflate_whole
from agentsh_proxy.llm.inspecting import Inspection, WholeStream, read_whole, too_large, unreadable
from agentsh_proxy.llm.relaying import Client, Relay, opening
from agentsh_proxy.llm.sniffing import Kind, kind_of

_PACKED = ("unknown_encoding", "a compressed body without a Content-Encoding")
_NOTHING = Step(b"")
_FRAME_ENDS = (b"\n\n", b"\r\n\r\n", b"\r\r")
_LONGEST_END = 4


class StreamInspection:
    """Server-sent events through the dialect's machine, one write a read."""

    __slots__ = (
        "_chunks", "_decoder", "_head", "_inspection", "_machine", "_own", "_steady", "_tail", "_unsure", "closing", "done",
        "started",
    )  # fmt: skip

    def __init__(
        self, head: ResponseHead, client: Client, inspection: Inspection, decoder: Decoder | None
    ) -> None:
        self._head = head
        self._chunks = client.chunks
        self._inspection = inspection
        self._decoder = decoder
        self._machine: Stream = inspection.dialect.stream(
            inspection.judge,
            limits=inspection.limits,
            fail_closed=inspection.fail_closed,
            enforce=inspection.enforce,
        )
        self._own = inspection.dialect.framing is not None
        self._unsure: bytes | None = b""  # the beginning, while it may be that of JSON
        self._tail = b""  # what the client has ends so: with a whole event, or within one
        self._steady = False  # the head has left, and what comes leaves as chunks, decoded by nobody
        self.started = False
        self.done = False
        self.closing = not (client.keep_alive and client.chunks)

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Pass `data` through the machine."""
        if self._steady and not last:
            step = self._machine.feed(data)
            out, judged, faults, ended = step
            if judged or faults:
                self._inspection.note(step)
            if out and not ended:  # for every read of every stream: no call
                self._tail = out[-_LONGEST_END:]
                return b"%x\r\n%b\r\n" % (len(out), out)
            return self._left(out, done=ended)
        if self._decoder is not None:
            data = self._inflate(data, last=last)
        if self._unsure is not None:
            data = self._settled(self._unsure + data, last=last)
            if self._unsure is not None:
                return b""
        step = self._machine.feed(data) if data else _NOTHING  # the last chunk brings nothing
        out = step.out
        if step.judged or step.faults:
            self._inspection.note(step)
        if last and not step.end:
            end = self._machine.finish()
            if end.judged or end.faults:
                self._inspection.note(end)
            out += end.out
        self._steady = self._chunks and self._decoder is None and self._unsure is None
        return self._left(out, done=last or step.end)

    def passes(self, data: bytes) -> bool:
        """Take `data` if it leaves as it came, as a chunk of its own: whole events behind whole events, so that what it ends with stays."""
        return self._steady and self._machine.passes(data)

    def fail(self, message: str) -> bytes:
        """Tell the client in an event of the dialect; what is held is never released."""
        self.closing = self.done = True
        out = self._machine.fail(message)
        return self._framed(out if self._between_events else b"\n\n" + out)

    def keep_alive(self) -> bytes:
        """Return a comment while a call is held, if one is legal here (WHATWG HTML section 9.2.7)."""
        if self.done or not self._between_events:
            return b""
        comment = self._machine.keep_alive()
        return self._framed(comment) if comment else b""

    def _settled(self, beginning: bytes, *, last: bool) -> bytes:
        """Look whether JSON came as a stream, which some client may take for what it is; return what is to be read now."""
        kind = kind_of(beginning, last=last)
        self._unsure = beginning if kind is None else None
        if kind is Kind.WHOLE and not self._own:
            self._machine = WholeStream(self._inspection)
        elif kind is Kind.PACKED:
            unreadable(self._inspection, *_PACKED, must_cut=True)
        return beginning

    @property
    def _between_events(self) -> bool:
        """Say whether something may be said between two events now; where frames are the dialect's own it knows that itself."""
        return self._own or not self._tail or self._tail.endswith(_FRAME_ENDS)

    def _left(self, out: bytes, *, done: bool) -> bytes:
        self.done = done
        if out:
            self._tail = out[-_LONGEST_END:]
        return self._framed(out)

    def _framed(self, out: bytes) -> bytes:
        if self._chunks:
            out = chunk(out) + LAST_CHUNK if self.done else chunk(out)
        if self.started:
            return out
        self.started = True
        fields = forwarded_response(self._head, rewritten=True) + self._inspection.label
        if self._chunks:
            fields += b"\r\nTransfer-Encoding: chunked"
        return opening(self._head, fields, closing=self.closing) + out

    def _inflate(self, data: bytes, *, last: bool) -> bytes:
        assert self._decoder is not None  # noqa: S101 - the caller checked
        try:
            plain = self._decoder.feed(data)
            if last:
                self._decoder.finish()
        except ProtocolError as error:
            # What cannot be decoded cannot be passed on decoded, and some decoders read further than ours.
            unreadable(self._inspection, "corrupt_encoding", str(error), must_cut=True)
            raise ProtocolError(f"the upstream's answer: {error}", status=502) from error
        return plain


class WholeInspection:
    """A JSON answer: held until it is whole, then read and, if need be, rewritten."""

    __slots__ = (
        "_client", "_head", "_inspection", "_pieces", "_relay", "_size", "closing", "done", "started",
    )  # fmt: skip

    def __init__(self, head: ResponseHead, client: Client, inspection: Inspection) -> None:
        self._head = head
        self._client = client
        self._inspection = inspection
        self._pieces: list[bytes] = []
        self._size = 0
        self._relay: Relay | None = None
        self.started = False
        self.done = False
        self.closing = not client.keep_alive

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Collect; with the last bytes, read and answer."""
        if self._relay is not None:
            return self._relayed(data, last=last)
        self._size += len(data)
        if self._size > self._inspection.max_body:
            detail = too_large(self._inspection)
            return self._give_up(detail, b"".join((*self._pieces, data)), last=last)
        if not last:
            self._pieces.append(data)
            return b""
        return self._answer(b"".join((*self._pieces, data)) if self._pieces else data)

    def fail(self, message: str) -> bytes:
        """Cut what is relayed; before that nothing was sent."""
        return self._relay.fail(message) if self._relay else b""

    def keep_alive(self) -> bytes:
        """Nothing can be sent before the whole was read."""
        return b""

    def _answer(self, raw: bytes) -> bytes:
        inspection = self._inspection
        try:
            data = inflate_whole(raw, self._head.encoding, cap=inspection.max_body)
        except ProtocolError as error:
            if error.status == 413:
                return self._give_up(str(error), raw, last=True)
            unreadable(inspection, "corrupt_encoding", str(error), must_cut=True)
            raise
        if kind_of(data, last=True) is Kind.PACKED:
            unreadable(inspection, *_PACKED, must_cut=True)
        step = read_whole(data, inspection)
        inspection.tell(step)
        if step.end:
            detail = step.faults[-1].detail
            raise ProtocolError(f"the upstream's answer could not be read: {detail}", status=502)
        self.started = self.done = True
        if step.out == data and data is raw:
            fields = forwarded_response(self._head, rewritten=False)
            if self._head.length is None:
                fields += b"\r\nContent-Length: %d" % len(raw)
            return opening(self._head, fields, closing=self.closing) + raw
        fields = forwarded_response(self._head, rewritten=True) + inspection.label
        fields += b"\r\nContent-Length: %d" % len(step.out)
        return opening(self._head, fields, closing=self.closing) + step.out

    def _give_up(self, detail: str, raw: bytes, *, last: bool) -> bytes:
        """By fail_closed: refuse, or pass on what is too large to be read and say so."""
        unreadable(self._inspection, "body_too_large", detail)
        self._relay = Relay(self._head, self._client)
        self._pieces.clear()
        return self._relayed(raw, last=last)

    def _relayed(self, data: bytes, *, last: bool) -> bytes:
        assert self._relay is not None  # noqa: S101 - set by the caller
        out = self._relay.feed(data, last=last)
        self.started, self.done, self.closing = True, self._relay.done, self._relay.closing
        return out
