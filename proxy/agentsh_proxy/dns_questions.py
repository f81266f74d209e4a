"""Asks a name server a client's question in the client's words, over UDP or TCP, and believes only what answers it (RFC 5452).

Every question goes from a port of its own under a number of its own. Nothing but the header and the question is looked at.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.network.dns_message import question_of

# As the C library: two tries each, but with less patience, because its own runs out after 5 s (resolv.conf(5)).
TIMEOUT = 2.0
TRIES = 2
_PORT = 53
SERVFAIL, NOTIMP = 2, 4


async def ask(query: bytes, servers: Sequence[str], *, stream: bool) -> bytes | None:
    """Return the first answer, under the client's number; None where nobody gave one."""
    for _ in range(TRIES):
        for server in servers:
            try:
                async with asyncio.timeout(TIMEOUT):
                    answer = await (_over_tcp if stream else _over_udp)(query, server)
            except (OSError, TimeoutError, asyncio.IncompleteReadError):
                continue
            return query[:2] + answer[2:]
    return None


def failure(query: bytes, code: int = SERVFAIL) -> bytes:
    """Return the answer to a query that says why there is none (RFC 1035, 4.1.1)."""
    end = len(query) if len(query) < 12 else 12 + len(question_of(query))
    asked = int.from_bytes(query[2:4], "big") & 0x7900  # what kind it is, and whether recursion was desired
    flags = 0x8080 | code | asked
    return query[:2] + flags.to_bytes(2, "big") + b"\0\1" + bytes(6) + query[12:end]


def answers(answer: bytes, query: bytes) -> bool:
    """Say whether a message is the answer to a query."""
    try:
        return (
            answer[:2] == query[:2]
            and bool(answer[2] & 0x80)
            and question_of(answer).lower() == question_of(query).lower()
        )
    except (ProtocolError, IndexError):
        return False


class _Asking(asyncio.DatagramProtocol):
    """One question over UDP; what does not answer it is not listened to."""

    def __init__(self, query: bytes) -> None:
        self._query = query
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def datagram_received(self, data: bytes, addr: object) -> None:  # noqa: ARG002 - connected: it is the server's
        if not self.answer.done() and answers(data, self._query):
            self.answer.set_result(data)

    def error_received(self, exc: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(exc)


async def _over_udp(query: bytes, server: str) -> bytes:
    query = _renumbered(query)
    transport, asking = await asyncio.get_running_loop().create_datagram_endpoint(
        lambda: _Asking(query), remote_addr=(server, _PORT)
    )
    try:
        transport.sendto(query)
        return await asking.answer
    finally:
        transport.close()


async def _over_tcp(query: bytes, server: str) -> bytes:
    query = _renumbered(query)
    reader, writer = await asyncio.open_connection(server, _PORT)
    try:
        writer.write(len(query).to_bytes(2, "big") + query)
        answer = await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
    finally:
        writer.close()
    if not answers(answer, query):
        raise OSError("not the answer to our question")
    return answer


def _renumbered(query: bytes) -> bytes:
    return secrets.token_bytes(2) + query[2:]
