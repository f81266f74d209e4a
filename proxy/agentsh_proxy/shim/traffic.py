"""Which lines between a client and a server somebody has to look at: calls, listings, and what the server wants of the client.

An answer is recognised by the id of the request that went out, never by its shape. Light on purpose (see `shim`).
"""

from __future__ import annotations

from agentsh_net.core.mcp.glance import (
    CALL,
    HANDSHAKES,
    LIST,
    LISTS,
    WATCHED,
    UnreadableError,
    asks_for_input,
    messages,
    reads,
    tells,
)
from agentsh_net.core.mcp.skim import Skim, is_id

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, Final

# Requests without an answer that are remembered: more than any client has in flight. The oldest go first.
MAX_OUTSTANDING: Final = 65_536
# Characters: a resource's URI is as long as its server likes, and the question about it is not.
MAX_NAMED: Final = 2_000


class Traffic:
    """The requests of one client that wait for their answers."""

    __slots__ = ("_requests", "_skim")

    def __init__(self, skim: Skim) -> None:
        self._skim = skim
        # id -> [method, whether it continues a listing, tool or what else it names] where the answer matters. Ids are typed: 1 is not "1".
        self._requests: dict[int | str, list[Any] | None] = {}

    @property
    def waiting(self) -> int:
        """How many requests wait for their answers."""
        return len(self._requests)

    def sent(self, found: list[dict[str, Any]], *, results: bool = False) -> None:
        """Remember the requests among messages that go on to the server; `results`: what they bring to read matters too."""
        for message in found:
            id_, method = message.get("id"), message.get("method")
            if method is not None and is_id(id_):
                matters = results or method == LIST or method in HANDSHAKES or method in LISTS
                self._expect(id_, [method, *_named(message)] if matters else None)

    def skimmed(self, id_: Any, tool: str, *, results: bool) -> None:
        """Remember the request of a line that was skimmed; `tool`: of a call."""
        if is_id(id_):
            self._expect(id_, [CALL, False, tool] if results and tool else None)

    def called(self, ids: Sequence[int | str], tools: Sequence[str], *, results: bool) -> None:
        """Remember calls, by their ids and tools."""
        if not results and len(self._requests) + len(ids) <= MAX_OUTSTANDING:
            self._requests.update(dict.fromkeys(ids))
            return
        for id_, tool in zip(ids, tools, strict=True):
            self._expect(id_, [CALL, False, tool] if results else None)

    def settle(self, ids: Sequence[int | str]) -> bool:
        """Forget the requests that have their answers; False, and nothing is forgotten, where one of them has to be looked at."""
        requests = self._requests
        for id_ in ids:
            if requests.get(id_, id_) is not None:
                return False
        if len(ids) > 1 and len(set(ids)) < len(ids):
            return False
        for id_ in ids:
            del requests[id_]
        return True

    def abandon(self) -> list[int | str]:
        """Forget the requests that wait for their answers, and return their ids."""
        waiting = [*self._requests]
        self._requests.clear()
        return waiting

    def _expect(self, id_: int | str, request: list[Any] | None) -> None:
        if len(self._requests) >= MAX_OUTSTANDING:
            del self._requests[next(iter(self._requests))]
        self._requests[id_] = request

    def matters(self, line: bytes, *, results: bool = False) -> dict[str, Any] | None:
        """Say why a server's line has to be looked at (what of the client's it answers), or None where it has not.

        `results`: what it brings to read matters too.
        """
        seen = self._skim.of_server(line)
        if seen is not None:
            method, id_ = seen
            if method and method not in WATCHED and not results:
                return None
            if not method and is_id(id_) and self._requests.get(id_, ()) is None:
                del self._requests[id_]
                return None
        try:
            found = messages(line)
        except UnreadableError:
            return {"asked": self._lists(), "stray": False}
        asked: list[list[Any]] = []
        wanted = stray = False
        for index, message in enumerate(found):
            if "method" in message:
                wanted = wanted or message["method"] in WATCHED or (results and tells(message))
                continue
            id_ = message.get("id")
            # Of no request, but it may be shown.
            wanted = wanted or asks_for_input(message) or (results and id_ is None)
            if id_ is not None and (not is_id(id_) or id_ not in self._requests):
                stray = True  # some clients take it for the answer to a request of a like id
            elif id_ is not None and (request := self._requests.pop(id_)) is not None:
                asked.append([index, id_, *request])
        if stray:
            return {"asked": [*asked, *self._lists()], "stray": True}
        return {"asked": asked, "stray": False} if asked or wanted else None

    def _lists(self) -> list[list[Any]]:
        """Return the listings and handshakes that are waited for."""
        return [
            [0, id_, *request]
            for id_, request in self._requests.items()
            if request and (request[0] == LIST or request[0] in HANDSHAKES)
        ]


def read(line: bytes) -> list[dict[str, Any]] | None:
    """Return the messages on a client's line; None where it cannot be read for certain."""
    try:
        return messages(line)
    except UnreadableError:
        return None


def judged(found: list[dict[str, Any]], *, reading: bool) -> bool:
    """Say whether messages of a client call a tool; `reading`: or ask for something else to read."""
    methods = [message.get("method") for message in found]
    return CALL in methods or (reading and any(map(reads, methods)))


def _named(message: dict[str, Any]) -> tuple[bool, str]:
    """Return whether a request continues a listing, and the tool, prompt or resource it names, as far as events show it."""
    params = message.get("params")
    if not isinstance(params, dict):
        return False, ""
    name = params.get("name", params.get("uri"))
    return params.get("cursor") is not None, name[:MAX_NAMED] if isinstance(name, str) else ""
