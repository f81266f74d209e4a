"""What a client asked and the server has not answered yet: what an answer has to be read as.

Which answer is to which request is the review's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from agentsh_net.core.mcp.jsonrpc import Id, Request

# Characters that are kept of what a request names, for events and errors: thousands wait, each as long as its client likes.
MAX_NAMED: Final = 2_000


class Asked(NamedTuple):
    """A request that waits for its answer. `continues`: a tools/list that named a cursor; `tool` is that of a call, or what else it names."""

    method: str
    continues: bool
    tool: str


Own = Mapping[Id, Asked]  # the requests that came together

NOBODYS: Final = Asked("", continues=False, tool="")  # what nobody asked for
# Requests of several clients of one session under one id: what comes beside their own answers is to none of them for certain.
SEVERAL: Final = Asked("", continues=False, tool="")
# A request whose answer came beside the POST that asked, as on the stream of a GET: its client takes the first one.
ANSWERED: Final = Asked("", continues=False, tool="")
NOBODYS_OWN: Final[Own] = MappingProxyType({})


def asked_by(message: Request) -> Asked:
    """Return what a request asks."""
    method, params = message.method[:MAX_NAMED], message.params
    if not isinstance(params, dict):
        return Asked(method, continues=False, tool="")
    name = params.get("name", params.get("uri"))
    return Asked(method, params.get("cursor") is not None, name[:MAX_NAMED] if isinstance(name, str) else "")
