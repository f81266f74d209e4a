"""Real sockets on loopback: an upstream that does as it is told, a client that sends raw bytes, a proxy between them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import wraps
from typing import Any

import uvloop

SECONDS = 120  # a test that takes longer hangs


def on_loop(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test on the event loop that the workers use, with an exit stack for what it opens."""

    @wraps(test)
    def run(**arguments: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(SECONDS), AsyncExitStack() as opened:
                await test(opened.enter_async_context, **arguments)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(bounded())

    run.__signature__ = _without_first(test)
    del run.__wrapped__
    return run


def _without_first(test: Callable[..., Any]) -> Any:
    import inspect

    signature = inspect.signature(test)
    return signature.replace(parameters=list(signature.parameters.values())[1:])


async def until(claim: Callable[[], Any]) -> None:
    """Wait until a claim holds (bounded by the test's own time)."""
    while not claim():
        await asyncio.sleep(0.005)
