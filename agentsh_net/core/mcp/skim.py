"""Lines of MCP over stdio of the plainest kinds, recognised at a third of the price of a glance: calls, results, notifications.

It says nothing about a line that `glance` would read otherwise, or of which more has to be known. Light on purpose
(see `shim_link`).
"""

from __future__ import annotations

import json

from agentsh_net.core.mcp.glance import CALL, INPUT_REQUESTS, INPUT_REQUIRED

TYPE_CHECKING = False  # see shim_link
if TYPE_CHECKING:
    from typing import Any, Final, TypeGuard

# Bytes of a line that is skimmed: all its objects are in memory twice for a moment.
MAX_SKIMMED: Final = 1 << 16

_ASKING: Final = frozenset(("jsonrpc", "id", "method", "params"))
_ANSWERING: Final = frozenset(("jsonrpc", "id", "result"))
_CALLING: Final = frozenset(("name", "arguments", "_meta"))
_REQUIRED: Final = INPUT_REQUIRED.encode()
_REQUESTS: Final = INPUT_REQUESTS.encode()


def is_id(value: Any) -> TypeGuard[int | str]:
    """Say whether a value is the id of a request that wants an answer; true and 1.0 are none."""
    return type(value) is int or type(value) is str


class Skim:
    """Skims lines. What it knows of one is forgotten with the next."""

    __slots__ = ("_objects", "_scan")

    def __init__(self) -> None:
        # The members of each object of a line, inner ones first; in outer ones None stands for them. The decoder appends
        # to it without a step of Python for each object, which is where the price of a glance comes from.
        self._objects: list[list[tuple[str, Any]]] = []
        self._scan = json.JSONDecoder(object_pairs_hook=self._objects.append).raw_decode

    def of_client(self, line: bytes) -> tuple[Any, str] | None:
        """Return the id and the tool of a client's call, None and nothing for a notification; None to look closer."""
        objects = self._members(line)
        if not objects:
            return None
        message = objects[-1]
        method = message.get("method")
        if not method or type(method) is not str or not message.keys() <= _ASKING:
            return None
        id_ = message.get("id")
        if method != CALL:
            return (None, "") if method.startswith("notifications/") and "id" not in message else None
        if len(objects) < 2 or not is_id(id_) or message.get("jsonrpc") != "2.0":
            return None
        params = objects[-2]  # no other member is an object, so no other one was read after it
        if message.get("params", "") is not None or not params.keys() <= _CALLING:
            return None
        tool = params.get("name")
        return (id_, tool) if tool and type(tool) is str else None

    def of_server(self, line: bytes) -> tuple[str, Any] | None:
        """Return the method of a message of the server, or none and the id of the request that it answers; None to look closer."""
        objects = self._members(line)
        if not objects:
            return None
        message = objects[-1]
        if message.keys() == _ANSWERING:
            # A result that asks says so in these letters, escaped or not.
            asks = _REQUIRED in line or _REQUESTS in line or b"\\u" in line
            return None if asks else ("", message["id"])
        method = message.get("method")
        return (method, None) if method and type(method) is str and message.keys() <= _ASKING else None

    def _members(self, line: bytes) -> list[dict[str, Any]]:
        """Return what stands in the objects of a line that is one object, itself the last; nothing where that is not certain."""
        objects = self._objects
        if len(line) > MAX_SKIMMED or line.find(b"\r") >= 0:
            return []
        try:
            text = line.decode()
            value, end = self._scan(text, 0)
            if value is not None or end != len(text):
                return []
            found = [*map(dict, objects)]
            # A key that stands twice in an object stands once in its dict.
            return found if [*map(len, found)] == [*map(len, objects)] else []
        except (ValueError, RecursionError):
            return []
        finally:
            objects.clear()
