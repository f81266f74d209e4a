"""The tools that one client was shown: page by page, and how they stand to the pins.

The registry holds one listing a server, for everybody; another client may be shown another. A tool whose definition here
is not the pinned one is refused here, whatever the registry has heard.
"""

from __future__ import annotations

from typing import Any

from agentsh_net.core.configuration.settings import Mcp
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.jsonrpc import Response
from agentsh_net.core.mcp.pages import PageLimits, Pages, RepeatedCursorError
from agentsh_net.core.model import Action, Candidate, Tool, Verdict
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import listed_tool
from agentsh_net.core.values import canonical
from agentsh_net.core.verdicts import steps


class Listing:
    """What a server listed to one client. `partial`: pages are missing.

    `mixed`: it may be more than one client that cannot be told apart, so that nobody knows which pages belong together.
    `lean`: it is one of thousands: of pages nothing is kept but hashes.
    """

    def __init__(self, server_id: str) -> None:
        self.partial = False
        self.mixed = False
        self.lean = False
        # Hashes, and folded name -> names as the server writes them. Together, as a page may be taken in a thread.
        self._shown: tuple[dict[str, str], dict[str, list[str]]] = ({}, {})
        self._server_id = server_id
        self._pages = Pages(PageLimits())
        self._tools: list[Tool] = []

    @property
    def hashes(self) -> dict[str, str]:
        """Of each tool, that of its definition."""
        return self._shown[0]

    def add(self, message: Response, size: int, *, continues: bool) -> list[dict[str, Any]]:
        """Take a page; return all definitions so far. Raises ProtocolError, with what was known before still known.

        After RepeatedCursorError so is what is on the page.
        """
        begun = continues and self.partial and not self.mixed
        pages, tools = (self._pages, self._tools) if begun else (Pages(PageLimits()), [])
        more, repeated = None, None
        try:
            more = pages.add(message.result, size)
        except RepeatedCursorError as error:  # its client is shown what is on it
            repeated = error
        tools = tools + [listed_tool(self._server_id, definition) for definition in message.result["tools"]]
        # Through the registry's own eyes: of two definitions under one name neither is the pinned one.
        seen, _ = Registry().register(self._server_id, tools)
        hashes = {tool.name: tool.hash for tool in seen.tools.values()}
        # To what was shown before, whatever that was: only a first page takes its place.
        adds = continues and not begun
        hashes = self._joined(hashes) if adds or (begun and self.lean) else hashes
        spellings: dict[str, list[str]] = {}
        for name in hashes:
            spellings.setdefault(fold(name), []).append(name)
        self._shown = hashes, spellings
        self.partial = more is not None or repeated is not None or adds
        definitions = [dict(definition) for definition in pages.tools]
        keep = self.partial and not self.mixed
        if self.lean:
            pages.tools, tools = [], []
        self._pages, self._tools = (pages, tools) if keep else (Pages(PageLimits()), [])
        if repeated is not None:
            raise repeated
        return definitions

    def _joined(self, page: dict[str, str]) -> dict[str, str]:
        """Return what a page adds to those before it; of two definitions under one name neither is the pinned one."""
        joined = self.hashes | {
            name: shown if self.hashes.get(name, shown) == shown else canonical.hash_of([shown])
            for name, shown in page.items()
        }
        if len(joined) > (most := PageLimits().tools):
            raise ProtocolError(f"tools/list has more than {most} tools", status=502)
        return joined

    def verdict(self, snapshot: Snapshot, tool: str) -> Verdict | None:
        """Return the block of a tool whose definition, as it was shown here, is not the pinned one; None for all others.

        A name in another case or width means the tool too: some servers take it for that.
        """
        hashes, spellings = self._shown
        names = (tool,) if tool in hashes else spellings.get(fold(tool), ()) if hashes else ()
        found = (self._verdict(snapshot, name) for name in names)
        return next((verdict for verdict in found if verdict is not None), None)

    def _verdict(self, snapshot: Snapshot, tool: str) -> Verdict | None:
        shown = self.hashes.get(tool)
        known = snapshot.registry.tool(self._server_id, tool)
        if shown is None or (known is not None and known.hash == shown):
            return None
        mcp = snapshot.config.sandbox.mcp
        about = Candidate(self._server_id, tool, shown)
        step = steps.pin_step(snapshot.pins, mcp.version_pinning, about)
        if step is None or step.outcome is not steps.Outcome.BLOCK:
            return None
        return refused(mcp, step.reason, step.rule, (about,))


def refused(mcp: Mcp, reason: str, rule: str, candidates: tuple[Candidate, ...] = ()) -> Verdict:
    """Return a block as policy speaks it: in audit mode it is let pass, and says so in `would`."""
    if mcp.enforce_policy:
        return Verdict(Action.BLOCK, reason, rule, None, candidates)
    return Verdict(Action.ALLOW, reason, rule, Action.BLOCK, candidates)
