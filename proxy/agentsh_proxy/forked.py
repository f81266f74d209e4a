"""A computation in a process of its own: what takes seconds would keep every other stream of a worker waiting.

It is forked from the worker, so that it has all that the computation needs; only the outcome is handed over, as bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
from collections.abc import Callable
from typing import Final, NoReturn

from agentsh_net.core.errors import ProtocolError

MAX_SECONDS: Final = 120  # of CPU; the largest body that may come takes a tenth on a slow machine
_READ: Final = 1 << 20
_NICE: Final = 5  # behind the worker's own streams, where there is one CPU for both
_MAX_FD: Final = 1 << 20

log = logging.getLogger("agentsh_proxy")


class Forked:
    """One worker's computations, one at a time: each has as much memory as it needs."""

    __slots__ = ("_turn",)

    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def run(self, work: Callable[[], bytes]) -> bytes:
        """Return what `work` returns, once it is its turn. Raises ProtocolError 503 where that came to nothing."""
        async with self._turn:
            try:
                return await _run(work)
            except OSError as error:
                raise ProtocolError(f"no process could be started for it: {error}", status=503) from error


async def _run(work: Callable[[], bytes]) -> bytes:
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[int] = loop.create_future()
    lives = True  # as long as its number is its own
    pieces: list[bytes] = []
    reading, writing = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        raise
    if not pid:
        _compute(work, writing)
    os.close(writing)

    def read() -> None:
        nonlocal lives
        data = os.read(reading, _READ)
        if data:
            pieces.append(data)
            return
        loop.remove_reader(reading)
        os.close(reading)
        _, status = os.waitpid(pid, 0)  # at once: its memory is gone before its end of the pipe is
        lives = False
        if not ended.done():
            ended.set_result(status)

    loop.add_reader(reading, read)
    try:
        status = await ended
    except asyncio.CancelledError:
        if lives:
            os.kill(pid, signal.SIGKILL)  # `read` sees its end
        raise
    if status:
        raise ProtocolError("the process that computed it died", status=503)
    return b"".join(pieces)


def _compute(work: Callable[[], bytes], writing: int) -> NoReturn:
    """Be the forked process: nothing of the worker's is touched, and nothing it holds open stays so."""
    status = 1
    try:
        gc.disable()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.closerange(3, writing)
        os.closerange(writing + 1, _MAX_FD)
        os.nice(_NICE)
        resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
        # Left to the kernel to close, which does so once the memory is gone; the worker may be gone, too.
        with contextlib.suppress(BrokenPipeError), open(writing, "wb", closefd=False) as pipe:
            pipe.write(work())
        status = 0
    except BaseException:
        log.exception("a computation broke")
    finally:
        os._exit(status)
