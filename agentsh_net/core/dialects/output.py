"""What comes out of reading an answer, gathered step by step: bytes, verdicts, and what could not be read.

Whether anything is stopped at all is decided here, for every dialect: by fail_closed, and by whether verdicts are enforced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentsh_net.core.dialects.base import Fault, Judged, Step
from agentsh_net.core.model import Action, ToolCall, Verdict


def notice(name: str, reason: str) -> str:
    """Return the text that stands where a blocked call stood."""
    return f"[agentsh] Tool '{name}' blocked by policy: {reason}"


class Output:
    """What one step of a machine leads to, gathered. `lost`: the machine gave up, where nothing is enforced."""

    __slots__ = ("_enforce", "_error_frame", "_fail_closed", "_faults", "_judged", "_out", "end", "lost")

    def __init__(
        self, *, fail_closed: bool, error_frame: Callable[[str], bytes], enforce: bool = True
    ) -> None:
        self._fail_closed = fail_closed
        self._error_frame = error_frame
        self._enforce = enforce
        self._out: list[bytes] = []
        self._judged: list[Judged] = []
        self._faults: list[Fault] = []
        self.end = False
        self.lost = False

    def relay(self, data: bytes) -> None:
        """Send the upstream's own bytes, unless the response was cut before."""
        if not self.end:
            self._out.append(data)

    def write(self, data: bytes) -> None:
        """Send what a machine made of the answer. Where nothing is enforced it is thrown away: the answer is relayed."""
        if self._enforce and not self.end:
            self._out.append(data)

    def judged(self, call: ToolCall, verdict: Verdict) -> None:
        """Record a decision for the audit."""
        if verdict.blocked and not self._enforce:
            # The policy began to enforce while this call was leaving.
            verdict = replace(verdict, action=Action.ALLOW, would=Action.BLOCK)
        self._judged.append(Judged(call, verdict))

    @property
    def calls(self) -> int:
        """Return how many calls were judged."""
        return len(self._judged)

    @property
    def blocked(self) -> int:
        """Return how many calls were blocked."""
        return sum(judged.verdict.blocked for judged in self._judged)

    def fault(self, cause: str, detail: str, *, must_cut: bool = False) -> bool:
        """Record what could not be read; cut the response under fail_closed, or where there is no honest way on.

        Where nothing is enforced nothing is cut, and the fault says what would have been. Returns whether the machine is done with
        this answer: if not, it passes the bytes on untouched.
        """
        grave = must_cut or self._fail_closed
        cut = grave and self._enforce
        self._faults.append(Fault(cause, detail, cut, would=grave and not cut, always=must_cut))
        if cut:
            self.relay(self._error_frame(f"response cut by agentsh-net: {cause}: {detail}"))
            self.end = True
        self.lost = self.lost or (must_cut and not cut)
        return cut or must_cut

    def dropped(self, cause: str, detail: str) -> None:
        """Record that something was left out of an answer that goes on."""
        self._faults.append(Fault(cause, detail, cut=self._enforce, would=not self._enforce, always=True))

    def step(self) -> Step:
        """Return all of it as a value."""
        return Step(b"".join(self._out), tuple(self._judged), tuple(self._faults), self.end)
