"""The daemon's ear: answers calls on the Unix socket with the handlers it was given, one line each.

Not its business: what the calls do, and where the socket lies (`socket_file`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

from agentsh_net.access import group_id
from agentsh_net.control.errors import ControlError
from agentsh_net.control.peer import Peer, daemon_uid, peer_of
from agentsh_net.control.protocol import (
    MAX_REQUEST,
    Request,
    control_error,
    decode_request,
    encode_error,
    encode_result,
)
from agentsh_net.control.socket_file import Listening, listen
from agentsh_net.control.tail import Followers, Wanted
from agentsh_net.core.errors import MORE_FILES, NO_FILES, ConfigError, KernelError, ProtocolError, StoreError

# What a call does: its arguments and who asks in, a JSON-able result out. It may raise our errors and ControlError.
Handler = Callable[[Mapping[str, Any], Peer], Awaitable[Any]]

MAX_CLIENTS: Final = 64  # people and scripts of one machine; more is a leak of somebody's
_IDLE: Final = 60.0  # seconds a client may keep a connection without asking
_SEND: Final = 30.0  # seconds a client may take to read an answer


class Server:
    """Serves the control socket. `tail` is its own call; every other one goes to `handlers`."""

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        self._path = path
        self._handlers = handlers
        self._followers = Followers()
        self._tasks: set[asyncio.Task[None]] = set()
        self._listening: Listening | None = None
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to listen. Raises ControlError (already_running, config)."""
        self._listening = listen(self._path)
        self._server = await asyncio.start_unix_server(
            self._accept, sock=self._listening.socket, limit=MAX_REQUEST
        )

    def publish(self, event: Mapping[str, Any]) -> None:
        """Send a stamped event (as JSON object) to those who follow. Never waits; call it in the loop's thread."""
        self._followers.publish(event)

    def followed(self) -> bool:
        """Say whether anybody follows."""
        return self._followers.there

    async def close(self) -> None:
        """Tell followers, end connections, and remove the socket."""
        self._followers.end()
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._listening is not None:
            self._listening.release()
            self._listening = None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(lambda ended: self._ended(ended, writer))

    def _ended(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._tasks.discard(task)
        writer.close()  # here and not in the task, which may have been cancelled before its first step
        if not task.cancelled() and task.exception() is not None:
            # A bug in a handler: the client sees its connection close, the log sees the traceback, the daemon lives.
            context = {"message": "a control call failed", "exception": task.exception(), "task": task}
            asyncio.get_running_loop().call_exception_handler(context)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            try:
                await self._converse(reader, writer)
            except ProtocolError as error:
                await self._send(writer, encode_error(control_error(error)))
            except ControlError as error:
                await self._send(writer, encode_error(error))
        except (ConnectionError, TimeoutError):
            writer.transport.abort()  # it went away, fell silent, or does not read

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = self._admit(writer)
        while (request := await self._request(reader)) is not None:
            if request.call == "tail":
                await self._tail(request, reader, writer)
                return
            await self._send(writer, await self._answer(request, peer))

    def _admit(self, writer: asyncio.StreamWriter) -> Peer:
        peer = peer_of(cast("socket.socket", writer.get_extra_info("socket")))
        if not peer.may_ask(daemon_uid(), group_id()):
            raise ControlError(
                f"user {peer.uid} may not control the daemon",
                kind="forbidden",
                remedy="use sudo, or join the group agentsh-net",
            )
        if len(self._tasks) > MAX_CLIENTS:
            raise ControlError(
                f"{MAX_CLIENTS} clients are connected already", kind="busy", remedy="end some of them"
            )
        return peer

    async def _request(self, reader: asyncio.StreamReader) -> Request | None:
        """Return the next request, None at the end. Raises ProtocolError, TimeoutError."""
        try:
            # Not wait_for: before Python 3.12 it can swallow a cancellation.
            async with asyncio.timeout(_IDLE):
                line = await reader.readuntil(b"\n")
        except asyncio.LimitOverrunError:
            raise ProtocolError(f"a request is at most {MAX_REQUEST} bytes") from None
        except asyncio.IncompleteReadError as end:
            if end.partial:
                raise ProtocolError("the request ended in the middle of a line") from None
            return None
        return decode_request(line)

    async def _answer(self, request: Request, peer: Peer) -> bytes:
        handler = self._handlers.get(request.call)
        if handler is None:
            known = ", ".join(sorted([*self._handlers, "tail"]))
            return encode_error(
                ControlError(
                    f"there is no call {request.call!r}", kind="unknown_call", remedy=f"known are: {known}"
                )
            )
        try:
            return encode_result(await handler(request.args, peer))
        except (ConfigError, KernelError, ProtocolError, StoreError) as error:
            return encode_error(control_error(error))
        except ControlError as error:
            return encode_error(error)
        except OSError as error:
            if error.errno not in NO_FILES:
                raise
            told = f"the daemon cannot look: {error.strerror}"
            return encode_error(ControlError(told, kind="kernel", remedy=MORE_FILES))

    async def _tail(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._followers.add(writer.transport, Wanted.parse(request.args))
        try:
            writer.write(encode_result({"streaming": True}))
            await reader.read(1)  # returns when the client leaves, or when it was dropped
        finally:
            self._followers.remove(writer.transport)

    @staticmethod
    async def _send(writer: asyncio.StreamWriter, line: bytes) -> None:
        writer.write(line)
        async with asyncio.timeout(_SEND):
            await writer.drain()
