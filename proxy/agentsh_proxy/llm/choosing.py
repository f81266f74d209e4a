"""What becomes of an upstream's answer: which kind of answer it is, by its head, or by the first bytes of its body.

Sans IO. What each kind does is `answers`' and `relaying`'s business.
"""

from __future__ import annotations

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web.http_head import ResponseHead
from agentsh_proxy.inflating import Decoder, inflater, partly_known
from agentsh_proxy.llm.answers import StreamInspection, WholeInspection
from agentsh_proxy.llm.deferring import Deferred
from agentsh_proxy.llm.inspecting import Inspection, check_charset, unreadable
from agentsh_proxy.llm.relaying import Answer, Client, Relay, Tapped
from agentsh_proxy.llm.sniffing import Kind, kind_of


def choose(head: ResponseHead, client: Client, inspection: Inspection) -> Answer:
    """Return what becomes of an answer with a body. Raises ProtocolError where it cannot be read and fail_closed says to stop it."""
    check_charset(head, inspection)
    try:
        decoder = inflater(head.encoding) if head.encoding else None
    except ProtocolError as error:
        # Most clients skip a coding they do not know: it is read as they read it.
        unreadable(inspection, "unknown_encoding", str(error), must_cut=partly_known(head.encoding))
        inspection = inspection._replace(
            label=b"\r\nContent-Encoding: " + head.encoding.encode("ascii", "replace")
        )
        head = head._replace(encoding="")
        decoder = None
    if decoder is not None and not inspection.enforce() and not inspection.restores:
        copy = inspection._replace(enforce=_never)
        return Tapped(head, client, _Copy(_deferred(head, client, copy, decoder)))
    streams = head.content_type == "text/event-stream" or inspection.dialect.framing is not None
    if inspection.wants_stream and streams and head.status < 300:
        return StreamInspection(head, client, inspection, decoder)
    if decoder is None and not inspection.wants_stream and head.content_type == "application/json":
        return WholeInspection(head, client, inspection)  # the usual case; it looks at the first byte too
    return _deferred(head, client, inspection, decoder)


def peeked(data: bytes, head: ResponseHead, inspection: Inspection) -> bytes:
    """Return the decoded beginning of a body, by a decoder of its own: the answer's reads from the first byte on.

    Raises ProtocolError where it is none, and has that told.
    """
    if not head.encoding:
        return data
    try:
        decoder = inflater(head.encoding)
        return data if decoder is None else decoder.feed(data)
    except ProtocolError as error:
        unreadable(inspection, "corrupt_encoding", str(error), must_cut=True)
        raise


def _deferred(
    head: ResponseHead, client: Client, inspection: Inspection, decoder: Decoder | None
) -> Deferred:
    """Return an inspected answer whose kind its head does not settle: the first byte of the body does."""

    def chosen(held: bytes, *, last: bool) -> Answer | None:
        sniffed = held if decoder is None else peeked(held, head, inspection)
        kind = kind_of(sniffed, last=last)
        if kind is None:
            return None
        stream = inspection.wants_stream or head.content_type == "text/event-stream"
        if inspection.wants_stream and inspection.dialect.framing is not None and head.status < 300:
            return StreamInspection(head, client, inspection, decoder)
        if kind in (Kind.WHOLE, Kind.PACKED) or (last and not stream and not sniffed.strip()):
            return WholeInspection(head, client, inspection)
        if stream or kind is Kind.EVENTS:
            return StreamInspection(head, client, inspection, decoder)
        if head.content_type.endswith("json"):
            return WholeInspection(head, client, inspection)
        unreadable(inspection, "unknown_type", f"an answer of type {head.content_type or 'none'!r}")
        if head.status >= 400:
            return Relay(head, client)  # nobody looks for calls in an error
        return StreamInspection(head, client, inspection, decoder)

    return Deferred(client, chosen)


class _Copy:
    """A `relaying.Tap` where nothing is enforced: the bytes of a compressed answer pass as they came, and a copy is inspected."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Answer) -> None:
        self._answer: Answer | None = answer

    def read(self, data: bytes, *, last: bool) -> None:
        """Inspect until there is nothing more to be found."""
        if self._answer is None:
            return
        try:
            self._answer.feed(data, last=last)
        except ProtocolError:
            self._answer = None  # and told
            return
        if self._answer.done and not last:
            self._answer = None


def _never() -> bool:
    return False
