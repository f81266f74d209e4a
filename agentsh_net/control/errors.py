"""The one error of the control socket, apart from the protocol so that the CLI can catch it without loading a JSON library."""

from __future__ import annotations


class ControlError(Exception):
    """A call that did not do what it should. `kind` says whose fault it is, `remedy` what to do next.

    Kinds: unreachable, timeout, forbidden, already_running, busy, request, unknown_call, config, kernel, store, denied,
    slow_reader, stopping.
    """

    def __init__(self, message: str, *, kind: str, remedy: str = "") -> None:
        self.kind = kind
        self.remedy = remedy
        super().__init__(message)

    def to_json(self) -> dict[str, str]:
        """Return the `error` of an answer."""
        return {"kind": self.kind, "message": str(self), "remedy": self.remedy}
