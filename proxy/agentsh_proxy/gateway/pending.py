"""What a client asked and the server has not answered yet: what an answer has to be read as.

What becomes of an answer is the review's business.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from agentsh_net.core.mcp.glance import LIST
from agentsh_net.core.mcp.jsonrpc import ErrorResponse, Id, Request, Response
from agentsh_net.core.mcp.uncertain import shown_by

# Requests without an answer that one client may have: more than any has in flight. The oldest are forgotten first.
MAX_WAITING: Final = 4096
# Characters that are kept of what a request names, for events and errors: thousands wait, each as long as its client likes.
MAX_NAMED: Final = 2_000


class PendingRequest(NamedTuple):
    """A request that waits for its answer. `continues`: a tools/list that named a cursor; `tool` is that of a call, or what else it names."""

    method: str
    continues: bool
    tool: str


Own = Mapping[Id, PendingRequest]  # the requests that came together

NOBODYS: Final = PendingRequest("", continues=False, tool="")  # what nobody asked for
# Requests of several clients of one session under one id: what comes beside their own answers is to none of them for certain.
SEVERAL: Final = PendingRequest("", continues=False, tool="")
# A request whose answer came beside the POST that asked, as on the stream of a GET: its client takes the first one.
ANSWERED: Final = PendingRequest("", continues=False, tool="")
NOBODYS_OWN: Final[Own] = MappingProxyType({})


def pending_request(message: Request) -> PendingRequest:
    """Return what a request asks."""
    method, params = message.method[:MAX_NAMED], message.params
    if not isinstance(params, dict):
        return PendingRequest(method, continues=False, tool="")
    name = params.get("name", params.get("uri"))
    return PendingRequest(
        method, params.get("cursor") is not None, name[:MAX_NAMED] if isinstance(name, str) else ""
    )


class PendingRequests:
    """The requests of one client that wait for their answers."""

    __slots__ = ("_asked",)

    def __init__(self) -> None:
        self._asked: dict[Id, PendingRequest] = {}

    @property
    def listing(self) -> bool:
        """Say whether a list of tools is waited for."""
        return any(asked.method == LIST for asked in self._asked.values())

    def add(self, going: Own) -> None:
        """Remember requests that go on to the server."""
        for id_, asked in going.items():
            other = self._asked.get(id_, ANSWERED)
            self._asked[id_] = asked if other is ANSWERED or other.method == asked.method else SEVERAL
        while len(self._asked) > MAX_WAITING:
            del self._asked[next(iter(self._asked))]

    def keep(self, id_: Id, asked: PendingRequest) -> None:
        """Wait on for an answer that was taken."""
        self._asked.setdefault(id_, asked)

    def forget(self, ids: Collection[Id]) -> None:
        """Wait for these answers no more."""
        for id_ in ids:
            self._asked.pop(id_, None)

    def asked(self, id_: Id, own: Own = NOBODYS_OWN) -> PendingRequest:
        """Return what a request asks that came with the others in `own`, or of which that is known; else what nobody asked for."""
        return own.get(id_) or self._asked.get(id_, NOBODYS)

    def answered(
        self, message: Response | ErrorResponse, ids: Collection[Id], own: Own
    ) -> PendingRequest | None:
        """Take the request that a message answers; None where it answers none, or shows what it would not be the answer to.

        What comes on the stream of a request clients take for its answer, whatever its id (the Python SDK; others where a GET
        resumes one).
        """
        if message.id is None:
            return NOBODYS
        shown = shown_by(message.raw.get("result")) if message.id not in ids else ()
        if shown and self.asked(message.id, own).method not in shown:
            return None
        return self.claimed(message.id, ids, own)

    def claimed(self, id_: Id, ids: Collection[Id], own: Own) -> PendingRequest | None:
        """Take the request with an id: of those that an answer came for, else of the whole conversation."""
        waiting, asked = self._asked.get(id_), own.get(id_)
        if waiting is ANSWERED:
            return None
        if asked is None:
            if waiting is None or waiting is SEVERAL:
                return None
            if id_ in ids:
                del self._asked[id_]
            else:
                self._asked[id_] = ANSWERED
            return waiting
        if id_ not in ids:
            return None  # it has its answer
        if waiting is asked:
            del self._asked[id_]
        return asked
