"""Sessions and the tokens that name them in a URL: unguessable, known to the agent, kept here as digests only.

Which processes run in one is `agent_sessions`' business.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterable
from typing import Final

from agentsh_net.core.audit.events import DEFAULT_SESSION
from agentsh_net.core.errors import ProtocolError
from agentsh_net.store.records import SessionRecord

_TOKEN_BYTES: Final = 32  # 256 bits: beyond guessing, and 43 characters in a URL
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
MAX_SESSIONS: Final = 10_000  # every worker holds all of them


class Sessions:
    """The sessions there are, by the digests of their tokens."""

    def __init__(self) -> None:
        self._by_digest: dict[str, SessionRecord] = {}

    def load(self, found: Iterable[SessionRecord]) -> None:
        """Take what the store remembers: a restart must not cut agents off."""
        self._by_digest = {session.token_sha256: session for session in found}

    def new(self, session_id: str, created: str) -> tuple[str, SessionRecord]:
        """Return a token for a session and the record to keep; the token means nothing before it is `add`ed.

        Raises ProtocolError for an id that cannot stand in a URL or a file name.
        """
        self.check(session_id)
        if len(self._by_digest) >= MAX_SESSIONS:
            raise ProtocolError(f"there are {MAX_SESSIONS} sessions already")
        token = secrets.token_urlsafe(_TOKEN_BYTES)
        return token, SessionRecord(session_id, hashlib.sha256(token.encode()).hexdigest(), created)

    def add(self, record: SessionRecord) -> None:
        """Let a token name its session from now on; one that it had before is void."""
        self.forget(record.session_id)
        self._by_digest[record.token_sha256] = record

    @staticmethod
    def check(session_id: str) -> None:
        """Raise ProtocolError for an id that cannot stand in a URL or a file name."""
        if not _ID.fullmatch(session_id) or session_id == "default":
            raise ProtocolError(
                f"a session id is 1 to 64 of A-Z a-z 0-9 . _ - and not 'default': {session_id[:80]!r}"
            )

    def of(self, token: str) -> str:
        """Return the session that a token names; the default one for any other."""
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
        known = self._by_digest.get(digest)
        return known.session_id if known is not None else DEFAULT_SESSION

    def forget(self, session_id: str) -> None:
        """Void a session's token."""
        self._by_digest = {d: s for d, s in self._by_digest.items() if s.session_id != session_id}

    def digests(self) -> dict[str, str]:
        """Return sha256 of the token (hex) -> session id, as the workers need it."""
        return {digest: session.session_id for digest, session in self._by_digest.items()}

    def ids(self) -> list[str]:
        """Return the sessions' ids, sorted."""
        return sorted({session.session_id for session in self._by_digest.values()})

    def records(self) -> list[SessionRecord]:
        """Return what the store is to remember."""
        return list(self._by_digest.values())
