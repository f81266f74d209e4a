"""Live events for whoever follows: each follower has a bounded buffer, and one that reads too slowly is dropped with a notice.

Not its business: who may follow (`server`), and history (the store).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentsh_net.control.errors import ControlError
from agentsh_net.control.protocol import encode_error
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import jsontext

MAX_BUFFER: Final = 1 << 20  # bytes one follower may lag behind: about a thousand events
MAX_FOLLOWERS: Final = 16  # so that followers together never hold more than 16 MiB
_LINGER: Final = 5.0  # seconds a dropped follower has to read what it was sent, notice included

_FIELDS: Final = {
    "type": "type",
    "session": "session_id",
    "server": "server_id",
    "tool": "tool_name",
    "action": "action",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which events a follower wants: patterns by event field, `*` stands for anything, case does not matter."""

    patterns: Mapping[str, re.Pattern[str]] = field(default_factory=dict)

    @classmethod
    def parse(cls, args: Mapping[str, Any]) -> Wanted:
        """Return the filter of a request's arguments. Raises ProtocolError."""
        patterns = {}
        for name, value in args.items():
            if name not in _FIELDS:
                raise ProtocolError(f"tail has no filter {name!r}: known are {', '.join(_FIELDS)}")
            if value is None:
                continue
            if not isinstance(value, str):
                raise ProtocolError(f"filter {name}: found {value!r}; expected text")
            glob = ".*".join(re.escape(part) for part in value.split("*"))
            patterns[_FIELDS[name]] = re.compile(glob, re.IGNORECASE | re.DOTALL)
        return cls(patterns)

    def matches(self, event: Mapping[str, Any]) -> bool:
        """Say whether an event is wanted."""
        return all(pattern.fullmatch(str(event.get(name) or "")) for name, pattern in self.patterns.items())


class Followers:
    """The clients that follow. Used from the event loop's thread only; nothing here waits."""

    def __init__(self) -> None:
        self._wanted: dict[asyncio.WriteTransport, Wanted] = {}

    def add(self, transport: asyncio.WriteTransport, wanted: Wanted) -> None:
        """Begin to send events to a client. Raises ControlError if too many follow."""
        if len(self._wanted) >= MAX_FOLLOWERS:
            raise ControlError(
                f"{MAX_FOLLOWERS} clients follow already", kind="busy", remedy="end one of them"
            )
        self._wanted[transport] = wanted

    def remove(self, transport: asyncio.WriteTransport) -> None:
        """Forget a client."""
        self._wanted.pop(transport, None)

    @property
    def there(self) -> bool:
        """Say whether there is one."""
        return bool(self._wanted)

    def publish(self, event: Mapping[str, Any]) -> None:
        """Send an event to all that want it; without followers it costs nothing."""
        if not self._wanted:
            return
        line = b""
        for transport, wanted in list(self._wanted.items()):
            if not wanted.matches(event):
                continue
            line = line or jsontext.dumps(event) + b"\n"
            if transport.get_write_buffer_size() + len(line) > MAX_BUFFER:
                self._drop(transport, ControlError("you read too slowly: events were dropped", kind="slow_reader", remedy="narrow the filter, or read the store"))  # fmt: skip
            else:
                transport.write(line)

    def end(self) -> None:
        """Tell every follower that the daemon stops."""
        for transport in list(self._wanted):
            self._drop(transport, ControlError("the daemon stops", kind="stopping"))

    def _drop(self, transport: asyncio.WriteTransport, notice: ControlError) -> None:
        self.remove(transport)
        transport.write(encode_error(notice))
        transport.close()  # sends what is buffered first
        asyncio.get_running_loop().call_later(_LINGER, transport.abort)
