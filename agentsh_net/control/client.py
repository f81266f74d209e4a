"""The other end of the control socket: synchronous, standard library only, every failure with what to do about it.

Not its business: what is printed (the CLI).
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

from agentsh_net.control.errors import ControlError
from agentsh_net.control.protocol import MAX_ANSWER, Request, decode_answer
from agentsh_net.control.socket_file import holder
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import jsontext

TIMEOUT: Final = 30.0  # seconds: a reload resolves names, and a query may take ten


class Client:
    """Calls the daemon; each call is a connection of its own."""

    def __init__(self, path: Path, timeout: float = TIMEOUT) -> None:
        self._path = path
        self._timeout = timeout

    def call(self, name: str, /, **args: Any) -> Any:
        """Return the result of a call. Raises ControlError (kind unreachable if there is no daemon)."""
        with self._asking(name, args) as answers:
            return decode_answer(_line(answers))

    def stream(self, name: str, /, **args: Any) -> Iterator[dict[str, Any]]:
        """Yield what a streaming call sends until the caller ends it. Raises ControlError where the daemon does: a notice says why."""
        with self._asking(name, args, waits=True) as answers:
            decode_answer(_line(answers))
            while True:
                # A daemon that was killed sends no notice, and may stop in the middle of a line.
                line = _line(answers)
                event = jsontext.loads(line)
                if "type" not in event:
                    decode_answer(line)
                yield event

    @contextmanager
    def _asking(self, name: str, args: dict[str, Any], *, waits: bool = False) -> Iterator[IO[bytes]]:
        try:
            with self._connection() as connection:
                connection.sendall(Request(name, args).encode())
                if waits:
                    connection.settimeout(None)  # events come when they come
                with connection.makefile("rb") as answers:
                    yield answers
        except TimeoutError:
            raise ControlError(
                f"the daemon did not answer {name} within {self._timeout:g} s",
                kind="timeout",
                remedy="see its log, or: agentsh-net down --force",
            ) from None
        except (BrokenPipeError, ConnectionResetError):
            raise _hung_up() from None
        except ProtocolError as error:
            raise ControlError(str(error), kind="request") from None

    def _connection(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
        connection.settimeout(self._timeout)
        try:
            connection.connect(str(self._path))
        except OSError as error:
            connection.close()
            raise self._unreachable(error) from error
        return connection

    def _unreachable(self, error: OSError) -> ControlError:
        match error:
            case PermissionError():
                message = f"you may not talk to the daemon at {self._path}"
                remedy = "use sudo, or join the group agentsh-net"
            case FileNotFoundError() if self._holder():
                message = f"a daemon runs (pid {self._holder()}), but its socket {self._path} was removed"
                remedy = "restart it: agentsh-net down ends it in order all the same"
            case FileNotFoundError() | ConnectionRefusedError() | NotADirectoryError():
                message = f"no daemon answers at {self._path}"
                remedy = "start it (sudo agentsh-net run), or name its socket with --socket"
            case _:
                message = f"cannot reach the daemon at {self._path}: {error}"
                remedy = "see: agentsh-net doctor"
        return ControlError(message, kind="unreachable", remedy=remedy)

    def _holder(self) -> int:
        """Return the process that a lock without its socket belongs to, 0 where there is none or it cannot be told."""
        with suppress(OSError):
            return holder(self._path) or 0
        return 0


def _line(answers: IO[bytes]) -> bytes:
    line = answers.readline(MAX_ANSWER)
    if line.endswith(b"\n"):
        return line
    if len(line) < MAX_ANSWER:
        raise _hung_up()
    raise ControlError(
        f"the daemon's answer is longer than {MAX_ANSWER} bytes",
        kind="request",
        remedy="ask for less at a time (--limit)",
    )


def _hung_up() -> ControlError:
    return ControlError("the daemon hung up", kind="unreachable", remedy="see the daemon's log")
