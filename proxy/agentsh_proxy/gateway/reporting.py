"""What the gateway reports of servers: the same page of prompts or resources once, however many clients have it listed.

What a report says is who makes it's business. Tools need no such thing: a worker knows which ones are known.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from typing import Any, Final

from agentsh_net.core.values import jsontext
from agentsh_net.core.values.recent import remember

MAX_PAGES: Final = 1024  # of all servers together; one that is forgotten is reported again

Report = dict[str, Any]


class Reporting:
    """Reports, but for a page that was the last one with its names, under the same policy."""

    def __init__(self, report: Callable[[Report], None], generation: Callable[[], int]) -> None:
        self._report = report
        self._generation = generation
        self._pages: OrderedDict[bytes, tuple[int, bytes]] = OrderedDict()

    def __call__(self, report: Report) -> None:
        """Report."""
        if "listed" in report:
            names = {kind: [*page] for kind, page in report["listed"].items()}
            which, page = _digest([report["server_id"], names]), (self._generation(), _digest(report))
            if self._pages.get(which) == page:
                return
            remember(self._pages, which, page, MAX_PAGES)
        self._report(report)


def _digest(value: Any) -> bytes:
    return sha256(jsontext.dumps(value)).digest()
