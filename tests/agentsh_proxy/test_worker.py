"""A worker serves what its supervisor says, acknowledges it when it is in force, and ends with its link."""

from __future__ import annotations

import asyncio
import gc
import socket
import weakref

from agentsh_proxy.worker import Worker
from loopback import on_loop, until
from loopback.client import Client, request
from loopback.proxy import snapshot

from agentsh_net.core import snapshot as snapshots
from agentsh_net.core.links import link


class Supervisor:
    """The other end of a worker's link, in the test."""

    def __init__(self) -> None:
        self.said: list = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    async def __aenter__(self):
        loop = asyncio.get_running_loop()
        ours, theirs = socket.socketpair()
        self.charge, worker_charge = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.worker = Worker(loop, worker_charge, [self.listener])
        await loop.create_unix_connection(lambda: self.worker, sock=theirs)
        self.reader, self.writer = await asyncio.open_unix_connection(sock=ours)
        self._reading = asyncio.ensure_future(self._read())
        return self

    async def __aexit__(self, *_):
        self.writer.close()
        await self.worker.ended
        if self.worker.service is not None:
            await self.worker.service.drain(0)
        await self.worker.close()
        self._reading.cancel()
        self.charge.close()
        self.listener.close()

    async def _read(self):
        framer = link.Framer(link.MAX_FROM_WORKER)
        while data := await self.reader.read(65536):
            self.said += [link.decode_from_worker(payload) for payload in framer.feed(data)]

    def tell(self, message) -> None:
        self.writer.write(link.encode(message))

    def acknowledged(self) -> list[tuple[int, int]]:
        return [(m.seq, m.generation) for m in self.said if isinstance(m, link.Ack)]


@on_loop
async def test_an_acknowledged_policy_is_served(opened):
    it = await opened(Supervisor())
    it.tell(link.Sessions(1, {}))
    it.tell(link.Apply(2, snapshots.encode(snapshot(1, generation=5))))
    await until(lambda: it.acknowledged() == [(1, 0), (2, 5)])
    client = await opened(Client(it.port))
    assert b'"generation":5' in (await client.ask(request("/", method="GET"))).body
    it.tell(link.Apply(3, snapshots.encode(snapshot(1, generation=6))))
    await until(lambda: it.acknowledged()[-1] == (3, 6))
    assert b'"generation":6' in (await client.ask(request("/", method="GET"))).body


@on_loop
async def test_no_full_collection_walks_the_policy_and_a_policy_that_was_replaced_is_let_go(opened):
    it = await opened(Supervisor())
    it.tell(link.Apply(1, snapshots.encode(snapshot(generation=1))))
    await until(lambda: it.acknowledged() == [(1, 1)])
    view = it.worker.service.view
    names = view.snapshot._policy._names
    assert names is not None, "the first call of all would wait for the index, and so would every stream"
    unfrozen = gc.get_objects()  # which tells of what is not frozen
    assert not any(thing is view or thing is names for thing in unfrozen)
    del names, unfrozen
    gone = weakref.ref(view.snapshot._policy)
    del view
    it.tell(link.Apply(2, snapshots.encode(snapshot(generation=2))))
    await until(lambda: gone() is None)


@on_loop
async def test_it_ends_with_its_link(opened):
    it = await opened(Supervisor())
    it.writer.close()
    await it.worker.ended


@on_loop
async def test_it_ends_when_told_what_it_does_not_know(opened):
    it = await opened(Supervisor())
    it.writer.write(link.frame(b'{"kind":"dance"}'))
    await it.worker.ended


@on_loop
async def test_told_to_drain_it_accepts_no_more_and_ends(opened):
    it = await opened(Supervisor())
    it.tell(link.Apply(1, snapshots.encode(snapshot(1))))
    await until(it.acknowledged)
    it.tell(link.Drain(2, 1.0))
    await it.worker.ended
