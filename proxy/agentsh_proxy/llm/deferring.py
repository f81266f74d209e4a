"""An answer whose kind its head does not tell: the first bytes of its body are held until they do.

Sans IO. What they tell is the chooser's business.
"""

from __future__ import annotations

from typing import Protocol

from agentsh_proxy.llm.relaying import Answer, Client


class Choose(Protocol):
    """Who tells by its beginning what an answer is."""

    def __call__(self, held: bytes, *, last: bool) -> Answer | None:
        """Return the answer, or None to wait for more of it (never where this is all). May raise ProtocolError."""
        ...


class Deferred:
    """One answer (`relaying.Answer`): what was chosen, once it is."""

    __slots__ = ("_choose", "_chosen", "_client", "_held")

    def __init__(self, client: Client, choose: Choose) -> None:
        self._client = client
        self._choose = choose
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
        """Decide by the first bytes, then pass on. Raises ProtocolError as what is decided for does."""
        if self._chosen is None:
            self._held += data
            self._chosen = self._choose(self._held, last=last)
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
