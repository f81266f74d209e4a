"""Which session a request is of: the one in which its client's socket was made, and for others the one whose token its path has.

Where a socket was made is the kernel's to say and the supervisor's to ask (`charging`); paths are read elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from agentsh_net.core.audit.events import DEFAULT_SESSION
from agentsh_net.core.errors import ProtocolError
from agentsh_proxy.charging import Charges


class Caller(NamedTuple):
    """Whose a request is. `shown` is the session whose token it had, where that is another's."""

    session_id: str
    shown: str = ""


def place(client: asyncio.BaseTransport, charges: Charges, *, enforce: bool) -> str:
    """Return the session in which a client's socket was made, empty for none.

    Raises ProtocolError where nobody can say and policy is enforced: it is gone, or hidden, or the supervisor does not answer.
    """
    here = charges.whose(client)
    if here is None and enforce:
        raise ProtocolError("nobody can say which session this connection is of: connect again", status=503)
    return here or ""


def caller(here: str, token: str, sessions: Mapping[str, str]) -> Caller:
    """Return whose a request is, by the session of its socket and its path's token; `sessions` are by the token's SHA-256.

    Raises ProtocolError for a token that is not known.
    """
    named = sessions.get(sha256(token.encode("ascii")).hexdigest()) if token else here or DEFAULT_SESSION
    if named is None:
        raise ProtocolError("the session token in the path is not known", status=403)
    return Caller(here, named if named != here else "") if here else Caller(named)
