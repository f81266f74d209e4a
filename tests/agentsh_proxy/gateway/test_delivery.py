"""An answer goes on until its last request is answered, gives signs of life while it waits, and says why it ends before."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from agentsh_proxy.gateway import delivery as module
from agentsh_proxy.gateway.connection import GatewayConnection
from agentsh_proxy.gateway.delivery import deliver
from agentsh_proxy.gateway.stream import GENERAL, MAX_QUEUED, Stream

from agentsh_net.core.errors import ProtocolError


class Client:
    """One that takes what it gets."""

    def __init__(self) -> None:
        self.got: list[bytes] = []

    async def send(self, data: bytes) -> None:
        self.got.append(data)
        await asyncio.sleep(0)

    @property
    def as_connection(self) -> GatewayConnection:
        return cast("GatewayConnection", self)


def test_messages_go_out_in_order_until_the_last_request_is_answered() -> None:
    async def main() -> None:
        stream, client = Stream(3, [1]), Client()
        delivery = asyncio.create_task(deliver(stream, client.as_connection, str))
        for seq in (5, 6):
            stream.put(seq, b"m%d" % seq)
            await asyncio.sleep(0.001)
        assert not delivery.done(), "a request waits for its answer"
        stream.ids = []
        stream.put(0, b"last")
        await delivery
        assert client.got == [
            b"event: message\nid: 3-5\ndata: m5\n\n",
            b"event: message\nid: 3-6\ndata: m6\n\n",
            b"event: message\ndata: last\n\n",
        ]

    asyncio.run(main())


def test_the_stream_of_a_get_ends_with_the_server_only() -> None:
    async def main() -> None:
        stream, client, why = Stream(GENERAL), Client(), [""]
        delivery = asyncio.create_task(deliver(stream, client.as_connection, lambda: why[0]))
        stream.put(1, b"a")
        await asyncio.sleep(0.001)
        assert not delivery.done()
        why[0] = "the server is gone"
        stream.wake()
        with pytest.raises(ProtocolError, match="the server is gone"):
            await delivery
        assert len(client.got) == 1

    asyncio.run(main())


def test_a_client_that_reads_too_slowly_is_told_so_after_what_it_can_have() -> None:
    async def main() -> None:
        stream, client = Stream(1, [1]), Client()
        stream.put(1, b"x" * MAX_QUEUED)
        stream.put(2, b"x")
        with pytest.raises(ProtocolError, match="too slowly"):
            await deliver(stream, client.as_connection, str)
        assert len(client.got) == 1

    asyncio.run(main())


def test_silence_is_filled_with_comments_and_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PING", 0.01)

    async def main() -> None:
        stream, client = Stream(1, [1]), Client()
        with pytest.raises(TimeoutError):
            await deliver(stream, client.as_connection, str, seconds=0.035)
        assert set(client.got) == {b": ping\n\n"}
        assert len(client.got) == 3

    asyncio.run(main())
