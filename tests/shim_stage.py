"""The shims' socket on a stage: a service whose answers a test writes, and shims that ask and tell."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from agentsh_net.control.peer import Peer
from agentsh_net.control.shim_allowance import Allowance
from agentsh_net.control.shim_server import ShimServer
from agentsh_net.core.links.shim_link import Frames, LinkError, frame


class Handler:
    """Answers with what it was asked; `later` answers are awaited, `news` are not answered."""

    def __init__(self, service: Service) -> None:
        self.service = service

    def opened(self) -> bytes:
        return frame({"do": "opened"})

    def revoked(self) -> bytes:
        return frame({"do": "revoke"})

    def failed(self, header: Mapping[str, Any], payload: bytes) -> bytes:
        if payload == b"worse":
            raise ZeroDivisionError
        return frame({"do": "failed"}, payload)

    def noted(self, calls: int) -> bytes:
        return frame({"do": "noted"}, b"%d" % calls)

    def answer(self, header: Mapping[str, Any], payload: bytes) -> bytes | Awaitable[bytes]:
        if header["ask"] == "called":
            self.service.asked += payload.split(b"\n")
            self.service.taken += 1
            self.service.crowded = self.service.crowded or not self.service.room
            return b""
        self.service.asked.append(payload)
        match header["ask"]:
            case "later":
                return self._later(payload)
            case "bug":
                return self._bug()
            case "bug at once":
                raise ZeroDivisionError
            case "nonsense":
                raise LinkError("nonsense")
        return frame({"do": "echo"}, payload)

    async def _later(self, payload: bytes) -> bytes:
        await self.service.gate.wait()
        return frame({"do": "echo"}, payload)

    async def _bug(self) -> bytes:
        await asyncio.sleep(0)
        raise ZeroDivisionError


class Service:
    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.begun: list[tuple[Peer, Mapping[str, Any], bool]] = []
        self.ended = 0
        self.taken = 0  # times that news were
        self.room = True
        self.crowded = False  # news were taken without room
        self.gate = asyncio.Event()

    def begin(self, peer: Peer, opening: Mapping[str, Any], *, trusted: bool) -> Handler:
        if opening.get("refuse"):
            raise LinkError("no")
        self.begun.append((peer, opening, trusted))
        return Handler(self)

    def takes_news(self) -> bool:
        return self.room

    def end(self, handler: Handler) -> None:
        self.ended += 1


class Shim:
    """The other end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._frames = Frames()
        self._got: list[tuple[dict[str, Any], bytes]] = []

    def send(self, ask: str, payload: bytes = b"", **facts: Any) -> None:
        self.writer.write(frame({"ask": ask, **facts}, payload))

    async def answer(self) -> tuple[str, bytes]:
        while not self._got:
            data = await self._reader.read(1 << 16)
            if not data:
                raise EOFError
            self._got += self._frames.feed(data)
        header, payload = self._got.pop(0)
        return header["do"], payload

    async def answers(self) -> None:
        """Read until the daemon hangs up."""
        while True:
            await self.answer()


class Scene:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.service = Service()
        self.bugs: list[BaseException] = []
        self.server = ShimServer(path, self.service, self.bugs.append)

    @property
    def user(self) -> Allowance:
        return self.server._users[os.getuid()]

    async def shim(self, *, opened: bool = True) -> Shim:
        shim = Shim(*await asyncio.open_unix_connection(self.path))
        if opened:
            shim.send("open")
            assert await shim.answer() == ("opened", b"")
        return shim


def play(path: Path, scene: Callable[[Scene], Awaitable[None]]) -> None:
    async def main() -> None:
        here = Scene(path)
        await here.server.start()
        try:
            async with asyncio.timeout(60):
                await scene(here)
        finally:
            await here.server.close()

    asyncio.run(main())
