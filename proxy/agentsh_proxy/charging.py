"""The question about a call: asked of the supervisor, so that rates and session rules are exact over all workers.

Synchronous, because a verdict is: one small datagram out, one back, over a socketpair to a thread that does nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from secrets import token_hex
from time import monotonic
from typing import Any

import orjson

from agentsh_net.core.audit.joining import Intent
from agentsh_net.core.links.link import MAX_CHARGE, MAX_CHARGE_NAME, MAX_TOKENS, MAX_TOLD
from agentsh_net.core.model import Crossing, call_id_of
from agentsh_net.core.verdicts.policy import Charge

# The arbiter answers in tens of microseconds. What takes longer than this is a supervisor that is gone or stopped.
PATIENCE = 0.25
SILENCE = 1.0  # seconds in which one that did not say whose a connection is is not asked again: each question holds up every stream
# Whether the supervisor remembers refused calls, by the first byte of the memory where it says so; here: it may.
REFUSING: Sequence[int] = b"\1"
_STALE = 64  # late answers to earlier questions that are skipped before giving up


class Charges:
    """Asks whether a call is within its server's rate, and what session rules have against it.

    `unanswered` is set where the answer was made up here.
    """

    __slots__ = (
        "_answers",
        "_fail_closed",
        "_number",
        "_process",
        "_refusing",
        "_silent_until",
        "_socket",
        "placed",
        "unanswered",
    )

    def __init__(
        self,
        connection: socket.socket,
        fail_closed: Callable[[], bool],
        refusing: Sequence[int] = REFUSING,
    ) -> None:
        connection.settimeout(PATIENCE)
        self._socket = connection
        self._fail_closed = fail_closed
        self._number = 0
        self._answers = 0
        self._process = token_hex(8)  # no process id: the next worker may have the same
        self._refusing = refusing
        self._silent_until = 0.0
        self.placed = False  # some session has a cgroup
        self.unanswered = False

    def of_one_answer(self) -> Charge:
        """Return the charge of one answer's calls, told apart by their keys: a call judged twice costs once.

        An id that is used again costs again, in another answer as in the same one (the key has the call's place).
        """
        self._answers += 1
        answer = f"{self._process}.{self._answers}"

        def charge(server_id: str, tool: str, call: str, session_id: str) -> bool | Crossing:
            key = sha256(f"{session_id}\0{tool}\0{call}".encode("utf-8", "surrogatepass")).hexdigest()
            names = [_sendable(name) for name in (tool, session_id, answer, call_id_of(call))]
            return self._ask(server_id, f"{answer}.{key}" if call else "", names)

        return charge

    def admit(self, provider: str, tokens: int) -> float:
        """Charge a request of about so many tokens: 0, or the seconds until it may be asked again. Without an answer: by fail_closed."""
        wait = self._ask_of(provider, min(tokens, MAX_TOKENS), "admit")
        return wait if wait is not None else float(self._fail_closed())

    def settle(self, provider: str, tokens: int) -> None:
        """Charge what an answer cost beyond its estimate, or give back."""
        self._ask_of(provider, max(-MAX_TOKENS, min(tokens, MAX_TOKENS)), "settle")

    def whose(self, client: asyncio.BaseTransport) -> str | None:
        """Return the session in which a client's socket was made: empty for none, None where nobody can say.

        While no session has a cgroup, nobody is asked.
        """
        if not self.placed:
            return ""
        now = monotonic()
        if now < self._silent_until:
            return None
        ends = [client.get_extra_info(end) for end in ("peername", "sockname")]
        try:
            match self._question({"whose": [part for end in ends for part in end[:2]]}):
                case str(session_id):
                    return session_id
        except TimeoutError:
            self._silent_until = now + SILENCE
        except (OSError, ValueError, TypeError):
            pass  # nobody is there to answer; or the client is gone
        return None

    def contradict(self, session_id: str, shown: str) -> None:
        """Tell that a client of one session showed another's token."""
        with contextlib.suppress(OSError, ValueError):
            self._question({"contradicts": [session_id, shown]})

    @property
    def refusing(self) -> bool:
        """Say whether any refused call is remembered (`refused`)."""
        return bool(self._refusing[0])

    def refuse(self, place: str, told: str) -> bool:
        """Have it remembered for all workers what is told of a refused call at a place; say whether it is not too long for that."""
        fits = len(place) <= MAX_CHARGE_NAME and len(told) <= MAX_TOLD
        if fits:
            with contextlib.suppress(OSError, ValueError):
                self._question({"refuses": [place, told]})
        return fits

    def refused(self, place: str) -> Iterator[str]:
        """Yield what is told of the refused calls at a place."""
        number = 0
        with contextlib.suppress(OSError, ValueError):
            while isinstance(told := self._question({"refused": [place, number]}), str):
                yield told
                number += 1

    def forget_refused(self, place: str, count: int) -> None:
        """Have the first so many of them forgotten."""
        with contextlib.suppress(OSError, ValueError):
            self._question({"forgets": [place, count]})

    def _ask_of(self, provider: str, tokens: int, what: str) -> float | None:
        try:
            match self._question({what: [provider, tokens]}):
                case int(wait) | float(wait):
                    return float(wait)
        except (OSError, ValueError):
            pass  # told by the caller's choice
        return None

    def of_the_wire(self, server_id: str, tool: str, session_id: str) -> bool | Crossing:
        """Charge a call that was seen on the wire: each costs, and nobody knows of which turn it is."""
        self.unanswered = False
        return self._ask(server_id, "", [_sendable(tool), _sendable(session_id), "", ""])

    def claim(self, server_id: str, tool: str, marked: Callable[[], str], session_id: str) -> Intent | None:
        """Return the call in a model's answer that a call on the wire carries out, where there is one."""
        try:
            match self._question(server_id, _sendable(tool), _sendable(session_id), marked()):
                case {"event_id": str(event_id), "session_id": str(session), "tool_call_id": str(call_id)}:
                    return Intent(event_id, session, call_id, None, (), 0.0)
        except (OSError, ValueError):
            pass  # it is charged like any other, and that question tells of who does not answer
        return None

    def _ask(self, server_id: str, call_key: str, names: list[str]) -> bool | Crossing:
        """Charge one call and return what is against it, or whether it is within the rate. Without an answer in time: by fail_closed."""
        try:
            match self._question(server_id, call_key, *names):
                case bool(within):
                    return within
                case dict(against):
                    return _crossing(against)
        except (OSError, ValueError, LookupError):
            pass  # told by `unanswered`, which becomes part of the verdict's reason
        self.unanswered = True
        return not self._fail_closed()

    def _question(self, *asked: str | dict[str, list[Any]]) -> Any:
        """Ask, and return the answer; None without one. Raises OSError, ValueError."""
        self._number += 1
        self._socket.send(orjson.dumps([self._number, *asked]))
        for _ in range(_STALE):
            match orjson.loads(self._socket.recv(MAX_CHARGE) or b"null"):
                case [int(number), answer] if number == self._number:
                    return answer
                case None:
                    break
        return None


def _sendable(name: str) -> str:
    """Return a name as JSON and the bound of a question take it: models write lone surrogates, and names of any length."""
    return name[:MAX_CHARGE_NAME].encode("utf-8", "backslashreplace").decode("utf-8")[:MAX_CHARGE_NAME]


def _crossing(against: Mapping[str, Any]) -> Crossing:
    """Return what a session rule has against a call. Raises LookupError for an answer that does not say it."""
    related = tuple(call for call in against["related"] if isinstance(call, dict))
    return Crossing(str(against["rule"]), str(against["severity"]), str(against["reason"]), related)
