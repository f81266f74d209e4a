"""Takes DNS answers that anybody on this machine receives to the resolver, and measures how long the planes took to follow.

An answer that goes by is not held up: a client may be quicker, and the sweep after the change closes what it opened. What an
answer may do at all is core.network.hearsay's business; who never wants to be overtaken has the stub.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from agentsh_net.core.audit.events import Event, LayerStateChanged
from agentsh_net.core.errors import KernelError, ProtocolError
from agentsh_net.core.network.dns_message import Message, ascribe, mentioned, parse
from agentsh_net.core.network.dns_packets import Messages, Payload
from agentsh_net.core.network.gap import Gaps
from agentsh_net.kernel.names.dns_capture import LAYER, DnsCapture
from agentsh_net.kernel.names.resolver import Resolver

# Of each second (an answer takes 20 to 60 us, the worst that can be made some ms); beyond that the kernel's buffer holds them
# and then drops, which is counted: a flood of answers does not take the supervisor's time from what else it does.
SHARE = 0.25
_PAUSE = 0.05
_REMIND = 60.0  # seconds between two events of addresses without room: whoever sends answers does not fill the trail
_WITH_STUB = "network.resolve.stub: true: whoever asks it is told of no address that is not refused"


class DnsSnoop:
    """Listens while it is started. `why_not` is empty while it does."""

    def __init__(
        self,
        resolver: Resolver,
        readdress: Callable[[], asyncio.Future[bool]],
        emit: Callable[[Event], None],
        log: logging.Logger,
        *,
        opened: Callable[[], DnsCapture] = DnsCapture,
    ) -> None:
        self._resolver, self._readdress = resolver, readdress
        self._emit, self._log, self._open = emit, log, opened
        self._capture: DnsCapture | None = None
        self._messages = Messages()
        self._gaps = Gaps()
        self._spent, self._since = 0.0, 0.0
        self._unreadable, self._new = 0, 0
        self._no_room, self._remind_at = 0, 0.0
        self._error: KernelError | None = KernelError("not started")

    @property
    def gaps(self) -> Gaps:
        """How long the planes took, from an answer's arrival by the kernel's clock to their confirmation."""
        return self._gaps

    def start(self) -> None:
        """Begin to listen; where that cannot be had, `status` says so."""
        try:
            self._capture = self._open()
        except KernelError as error:
            self._fail(error)
            return
        self._error = None
        asyncio.get_running_loop().add_reader(self._capture.fileno(), self._read)

    def stop(self) -> None:
        """Stop listening."""
        if self._capture is not None:
            asyncio.get_running_loop().remove_reader(self._capture.fileno())
            self._capture.close()
            self._capture = None

    def status(self) -> dict[str, Any]:
        """Return what it did. The kernel is asked what it dropped, and with it whether the socket is still there."""
        lost = 0
        if self._capture is not None:
            try:
                lost = self._capture.count_lost()
            except KernelError as error:
                self._fail(error)
        why = self._error
        return {
            "wanted": True,
            "in_force": why is None,
            "reason": str(why) if why else "",
            "remedy": why.remedy if why else "",
            "seen": self._capture.seen if self._capture is not None else 0,
            "lost": lost + self._messages.lost,
            "unreadable": self._unreadable,
            "changes": self._new,
            "no_room": self._resolver.unheard,
            "gap": asdict(self._gaps.summary()),
        }

    def _fail(self, error: KernelError) -> None:
        self.stop()
        self._error = error
        self._log.error("DNS answers are not snooped: %s (%s)", error, error.remedy)
        self._emit(
            LayerStateChanged(layer=LAYER, state="not in force", reason=str(error), remedy=error.remedy)
        )

    def _read(self) -> None:
        assert self._capture is not None  # noqa: S101 - only called while there is one
        began = asyncio.get_running_loop().time()
        try:
            packets = self._capture.packets()
        except KernelError as error:
            self._fail(error)
            return
        for packet in packets:
            for payload in self._messages.feed(packet.data):
                self._take(payload, packet.time_ns)
        self._pace(began)

    def _take(self, payload: Payload, time_ns: int) -> None:
        try:
            message = parse(payload.message)
        except ProtocolError:
            self._unreadable += 1
            return
        if self._hear(message, payload):
            self._new += 1
            self._readdress().add_done_callback(lambda done: self._measure(done, time_ns))

    def _hear(self, message: Message, payload: Payload) -> bool:
        """Say whether the answer brought an address that was not known."""
        watched = self._resolver.wire_names()
        named = mentioned(message, watched)
        if not named:
            return False
        new = self._resolver.overheard(ascribe(message, named), payload.sender)
        if self._resolver.unheard > self._no_room:
            self._tell_no_room(payload)
        if new or payload.cut or not message.whole:  # what we could not read the client may have read
            self._resolver.ask_soon(named)
        return new

    def _tell_no_room(self, payload: Payload) -> None:
        self._no_room, now = self._resolver.unheard, asyncio.get_running_loop().time()
        if now < self._remind_at:
            return
        self._remind_at = now + _REMIND
        reason = f"{payload.sender} tells of more addresses of a declared server than are kept: the others are not refused"
        self._log.warning("%s (%s)", reason, _WITH_STUB)
        self._emit(LayerStateChanged(layer=LAYER, state="out of room", reason=reason, remedy=_WITH_STUB))

    def _measure(self, done: asyncio.Future[bool], time_ns: int) -> None:
        if not done.cancelled() and done.result() and time_ns:
            self._gaps.add((time.time_ns() - time_ns) / 1e9)

    def _pace(self, began: float) -> None:
        """Spend no more than SHARE of a second on what was read since `began`: else pause until the second is over."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now - self._since > 1:
            self._since, self._spent = now, 0.0
        self._spent += now - began
        if self._spent > SHARE and self._capture is not None:
            loop.remove_reader(self._capture.fileno())
            loop.call_later(max(_PAUSE, self._since + 1 - now), self._go_on)

    def _go_on(self) -> None:
        if self._capture is not None:
            asyncio.get_running_loop().add_reader(self._capture.fileno(), self._read)
