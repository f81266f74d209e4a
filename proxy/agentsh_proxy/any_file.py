"""Files that a client fetches from a provider: results of batches are read line by line, everything else passes as it came.

Sans IO. Which it is, the first line tells. What a line means is the dialect's business.
"""

from __future__ import annotations

from agentsh_net.core import strict_json
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.http_head import ResponseHead
from agentsh_proxy.answers import StreamInspection
from agentsh_proxy.inflating import inflater
from agentsh_proxy.inspecting import Inspection, unreadable
from agentsh_proxy.overhearing import Overheard, Overhearing
from agentsh_proxy.relaying import Answer, Client
from agentsh_proxy.sniffing import BOM


class AnyFile:
    """One fetched file (`relaying.Answer`)."""

    __slots__ = ("_chosen", "_client", "_head", "_held", "_inspection")

    def __init__(self, head: ResponseHead, client: Client, inspection: Inspection) -> None:
        self._head = head
        self._client = client
        self._inspection = inspection
        self._held = b""
        self._chosen: Answer | None = None

    @property
    def started(self) -> bool:
        """Say whether the client got anything."""
        return self._chosen is not None and self._chosen.started

    @property
    def done(self) -> bool:
        """Say whether the client has all it gets."""
        return self._chosen is not None and self._chosen.done

    @property
    def closing(self) -> bool:
        """Say whether the client's connection must end with this answer."""
        return self._chosen.closing if self._chosen is not None else not self._client.keep_alive

    def feed(self, data: bytes, *, last: bool) -> bytes:
        """Decide by the first line, then pass on. Raises ProtocolError as what is decided for does."""
        if self._chosen is None:
            self._held += data
            self._chosen = self._choose(last=last)
            if self._chosen is None:
                return b""
            data, self._held = self._held, b""
        return self._chosen.feed(data, last=last)

    def fail(self, message: str) -> bytes:
        """Fail as the chosen answer does."""
        return self._chosen.fail(message) if self._chosen is not None else b""

    def keep_alive(self) -> bytes:
        """Keep alive as the chosen answer does."""
        return self._chosen.keep_alive() if self._chosen is not None else b""

    def _choose(self, *, last: bool) -> Answer | None:
        beginning = self._peeked().removeprefix(BOM).lstrip()
        line, end, _ = beginning.partition(b"\n")
        if not beginning.startswith(b"{") and (beginning or last):
            return self._passing()
        if not (end or last) and len(beginning) <= self._inspection.limits.max_frame:
            return None
        if _is_object(line.strip()) or (not end and not last):
            inspection = self._inspection
            decoder = inflater(self._head.encoding) if self._head.encoding else None
            return StreamInspection(self._head, self._client, inspection, decoder)
        return self._passing()

    def _passing(self) -> Overheard:
        inspection = self._inspection
        return Overheard(
            self._head, self._client, Overhearing(inspection.fail_closed, inspection.enforce, inspection.note)
        )

    def _peeked(self) -> bytes:
        """Return the beginning, decoded: by a decoder of its own, since the answer's reads from the first byte on."""
        if not self._head.encoding:
            return self._held
        try:
            decoder = inflater(self._head.encoding)
            return self._held if decoder is None else decoder.feed(self._held)
        except ProtocolError as error:
            unreadable(self._inspection, "corrupt_encoding", str(error), must_cut=True)
            raise


def _is_object(line: bytes) -> bool:
    """Say whether any client finds an object in a line."""
    try:
        return isinstance(strict_json.read(line).value, dict)
    except strict_json.DivergentError:
        return True
    except ProtocolError:
        return False
