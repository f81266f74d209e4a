"""The threads in which the event loop has slow calls made: of the kernel, the store, the file system."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress


class Threads(ThreadPoolExecutor):
    """As many as are needed at once; where the host has no more, what is to be done waits for those there are.

    Not all of them from the start: each keeps some memory of its own (malloc's arenas).
    """

    def __init__(self) -> None:
        """Start one. Raises RuntimeError where not even that can be had."""
        super().__init__(thread_name_prefix="agentsh-net")
        self.submit(lambda: None)

    def _adjust_thread_count(self) -> None:
        # The work is in the queue already: a failure here would be told of what is done all the same.
        with suppress(RuntimeError) if self._threads else nullcontext():
            super()._adjust_thread_count()
