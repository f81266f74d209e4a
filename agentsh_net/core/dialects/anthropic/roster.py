"""The blocks of one Anthropic stream, in both views that clients take: by the index in their start, and by their position.

The SDKs take position, Claude Code the index, LangChain merges whatever shares an index. Arguments count for a call only where
all of them agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentsh_net.core.dialects.machine import State

# Far beyond any answer; other streams wait while those of a hostile one are judged, some 50 us each.
MAX_BLOCKS: Final = 1 << 12


@dataclass(slots=True, eq=False)
class Block:
    """A content block, and while it is held what its call says."""

    index: int | None
    state: State = State.PLAIN
    fields: Mapping[str, Any] = field(default_factory=dict)
    parts: list[str] = field(default_factory=list)  # of the arguments' JSON
    flaw: str = ""
    doubt: str = ""  # why nobody can tell what its arguments are
    notice: str = ""
    call_id: Any = None  # of a call that is steered

    @property
    def live(self) -> bool:
        """Say whether the client has, or may yet get, a call here."""
        return self.state not in {State.PLAIN, State.REPLACED}


class Roster:
    """Every block that came, and the indices under which the client has a call or arguments of something else."""

    __slots__ = ("_argued", "_by_index", "_called", "_count", "_positions")

    def __init__(self) -> None:
        self._count = 0
        self._positions: list[Block] = []
        self._by_index: dict[int | None, Block] = {}
        self._called: set[int | None] = set()
        self._argued: set[int] = set()

    @property
    def full(self) -> bool:
        """Say whether no further block is taken."""
        return self._count >= MAX_BLOCKS

    def add(self, block: Block, *, positioned: bool = True) -> None:
        """Take the next block; without `positioned`, one that only clients that go by the index will see."""
        self._count += 1
        self._by_index[block.index] = block
        if positioned:
            self._positions.append(block)

    def named(self, index: int | None) -> Block | None:
        """Return the last block that came with an index."""
        return self._by_index.get(index)

    def position(self, block: Block) -> int:
        """Return where a block stands among all."""
        return self._positions.index(block)

    def released(self, block: Block) -> None:
        """Note that the client has this call."""
        self._called.add(block.index)

    def argued(self, index: int | None) -> None:
        """Note that the client has arguments under an index that are no call's of ours."""
        if index is not None:
            self._argued.add(index)

    def reused(self, index: int | None) -> bool:
        """Say whether a call at this index could get, in some client, what belongs to another."""
        return index in self._called or index in self._argued

    def misplaced(self, index: int | None) -> str:
        """Say why arguments do not belong, for every client, to the last block of their index; empty where they do."""
        if index is None:
            return "arguments without an index"
        named = self._by_index.get(index)
        placed = self._positions[index] if index < len(self._positions) else None
        if placed is not None and placed is not named and placed.live:
            return "arguments for two calls, by index and by position"
        if index in self._called and not (named is not None and named.live):
            return "arguments for a call whose index was used again"
        return "arguments for no block" if named is None else ""
