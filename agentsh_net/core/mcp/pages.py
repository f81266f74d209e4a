"""The pages of one tools/list: collected until the last, ended with a clear error when a server never comes to one.

Definitions stay as the server wrote them; hashing and judging them is the registry's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp.glance import misspelt

_NAME = frozenset(("name",))


@dataclass(frozen=True, slots=True)
class PageLimits:
    """Bounds of one listing. The largest public servers offer a few hundred tools on a handful of pages."""

    pages: int = 500
    tools: int = 5_000
    size: int = 16 << 20  # bytes of all pages together: 5,000 tools at 3 KiB
    values: int = 500_000  # in all definitions, arrays and objects among them: 5,000 tools at 100


class RepeatedCursorError(ProtocolError):
    """A page was taken, and names a cursor that another one named: a listing without an end, or a page that was asked for twice."""


class Pages:
    """One tools/list from its first page to its last."""

    __slots__ = ("_cursors", "_limits", "_pages", "_size", "_values", "tools")

    def __init__(self, limits: PageLimits) -> None:
        self.tools: list[Mapping[str, Any]] = []
        self._limits = limits
        self._cursors: set[str] = set()
        self._pages = 0
        self._size = 0
        self._values = 0

    def add(self, result: Any, size: int) -> str | None:
        """Take a page of `size` bytes; return the cursor of the next, None after the last. `""` is a cursor like any other."""
        self._pages += 1
        self._size += size
        listed = _tools(result)
        self._values += _values(listed, self._limits.values - self._values)
        if self._values > self._limits.values:
            raise ProtocolError(
                f"tools/list has more than {self._limits.values} values in its definitions", status=502
            )
        self.tools += listed
        if len(self.tools) > self._limits.tools:
            raise ProtocolError(f"tools/list has more than {self._limits.tools} tools", status=502)
        if self._size > self._limits.size:
            raise ProtocolError(f"tools/list is longer than {self._limits.size} bytes", status=502)
        cursor = result.get("nextCursor")
        if cursor is None:
            return None
        if not isinstance(cursor, str):
            raise ProtocolError("tools/list has a nextCursor that is not a string", status=502)
        if cursor in self._cursors:
            raise RepeatedCursorError(
                f"tools/list repeats a cursor after {self._pages} pages: it would never end", status=502
            )
        if self._pages >= self._limits.pages:
            raise ProtocolError(f"tools/list has more than {self._limits.pages} pages", status=502)
        self._cursors.add(cursor)
        return cursor


def _values(tools: list[Mapping[str, Any]], most: int) -> int:
    """Return how many values definitions hold; about one more than `most` where that is exceeded."""
    count, level = 0, list[Any](tools)
    while level and count <= most:
        item = level.pop()
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        count += 1
        if count + len(level) + len(inner) > most:
            return most + 1
        level += inner
    return count


def _tools(result: Any) -> list[Mapping[str, Any]]:
    if not isinstance(result, dict):
        raise ProtocolError("tools/list answered something that is not an object", status=502)
    if result.get("resultType", "complete") != "complete":
        raise ProtocolError("tools/list asks for input before it answers", status=502)
    tools = result.get("tools")
    if not isinstance(tools, list):
        raise ProtocolError("tools/list answered without a list of tools", status=502)
    for index, tool in enumerate(tools):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise ProtocolError(
                f"tools/list: tool {index} of a page is not an object with a name", status=502
            )
        if misspelt(tool, _NAME):
            raise ProtocolError(f"tools/list: tool {index} of a page has its name twice", status=502)
    return tools
