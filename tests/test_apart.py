"""Little is done at once, much in a thread, where the loop goes on beside it."""

from __future__ import annotations

import asyncio
import threading

from agentsh_net.apart import INLINE, apart


def test_work_on_a_long_message_leaves_the_loop_to_others() -> None:
    async def main() -> None:
        here = threading.get_ident()
        assert await apart(INLINE, threading.get_ident) == here
        assert await apart(INLINE + 1, threading.get_ident) != here
        assert await apart(INLINE + 1, threading.get_ident, 2 * INLINE) == here
        going = threading.Event()
        asyncio.get_running_loop().call_soon(going.set)
        assert await apart(INLINE + 1, lambda: going.wait(60))

    asyncio.run(main())
