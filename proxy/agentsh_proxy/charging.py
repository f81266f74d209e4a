"""The rate question: asked of the supervisor, so that limits are exact over all workers.

Synchronous, because a verdict is: one small datagram out, one back, over a socketpair to a thread that does nothing else.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from hashlib import sha256
from os import getpid

import orjson

from agentsh_net.core.link import MAX_CHARGE
from agentsh_net.core.policy import Charge

# The arbiter answers in tens of microseconds. What takes longer than this is a supervisor that is gone or stopped.
PATIENCE = 0.25
_STALE = 64  # late answers to earlier questions that are skipped before giving up


class Charges:
    """Asks whether a call is within its server's rate. `unanswered` is set where the answer was made up here."""

    __slots__ = ("_answers", "_fail_closed", "_number", "_process", "_socket", "unanswered")

    def __init__(self, connection: socket.socket, fail_closed: Callable[[], bool]) -> None:
        connection.settimeout(PATIENCE)
        self._socket = connection
        self._fail_closed = fail_closed
        self._number = 0
        self._answers = 0
        self._process = f"{getpid():x}"
        self.unanswered = False

    def of_one_answer(self) -> Charge:
        """Return the charge of one answer's calls: a call judged twice costs once, an id used again in another answer costs again."""
        self._answers += 1
        answer = f"{self._process}.{self._answers}"

        def charge(server_id: str, tool: str, call_id: str, session_id: str) -> bool:
            key = sha256(f"{session_id}\0{tool}\0{call_id}".encode("utf-8", "surrogatepass")).hexdigest()
            return self._ask(server_id, f"{answer}.{key}" if call_id else "")

        return charge

    def _ask(self, server_id: str, call_key: str) -> bool:
        """Charge one call and say whether it is within the rate. Without an answer in time: by fail_closed."""
        self._number += 1
        try:
            self._socket.send(orjson.dumps([self._number, server_id, call_key]))
            for _ in range(_STALE):
                match orjson.loads(self._socket.recv(MAX_CHARGE) or b"null"):
                    case [int(number), bool(within)] if number == self._number:
                        return within
                    case None:
                        break
        except (OSError, orjson.JSONDecodeError):
            pass  # told by `unanswered`, which becomes part of the verdict's reason
        self.unanswered = True
        return not self._fail_closed()
