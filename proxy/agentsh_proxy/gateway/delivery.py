"""What is still to come of an answer that was begun goes to its client as it comes, with a sign of life where nothing does.

Which messages a stream gets, and what an answer begins with, is the session's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from agentsh_net.core.errors import ProtocolError
from agentsh_proxy.gateway.connection import GatewayConnection
from agentsh_proxy.gateway.stream import GENERAL, Stream, event

PING: Final = 15.0  # seconds of silence before a comment keeps a stream's connection alive


async def deliver(
    stream: Stream, client: GatewayConnection, ended: Callable[[], str], seconds: float | None = None
) -> None:
    """Send what comes until every request of the stream is answered; that of a GET has no end of its own.

    `ended` says why the server is gone, once it is. Raises ProtocolError, and TimeoutError after `seconds` of silence.
    """
    silent = 0.0
    while stream.waiting or stream.ids or stream.number == GENERAL:
        if stream.waiting:
            seq, message = stream.take()
            await client.send(event(stream.number, seq, message))
            silent = 0.0
            continue
        if stream.cut:
            raise ProtocolError("the client reads too slowly", status=502)
        if why := ended():
            raise ProtocolError(why, status=502)
        try:
            async with asyncio.timeout(PING if seconds is None else min(PING, seconds - silent)):
                await stream.news()
        except TimeoutError:
            silent += PING
            if seconds is not None and silent >= seconds:
                raise
            await client.send(b": ping\n\n")
