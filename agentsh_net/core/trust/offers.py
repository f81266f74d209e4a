"""What the tools that a request offers mean under a snapshot: which registered tool each is, and whether it still is what it was.

An agent may call a tool by any name: one whose description and schema are a registered tool's is bound to that tool. One
that has the name of a registered tool and says something else was changed between the server and the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentsh_net.core.dialects.request_offers import Offer
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Candidate, Shown, ToolCall
from agentsh_net.core.naming import aliases
from agentsh_net.core.naming.folding import NOT_ALNUM, fold
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust import outline
from agentsh_net.core.trust.outline import Outline
from agentsh_net.core.values import canonical
from agentsh_net.core.values.strict_json import Path
from agentsh_net.core.verdicts.inner_calls import inner_calls

SHORTEST_SHARED = 3  # letters by which a tool's name is known in that of a client

Key = tuple[str, str]  # folded namespace and name


@dataclass(frozen=True, slots=True)
class Altered:
    """An offer that has the name of a registered tool and not its definition. `surely`: the name can mean nothing else."""

    offer: str
    about: Candidate
    shown_hash: str
    fields: tuple[str, ...]
    surely: bool


@dataclass(frozen=True, slots=True)
class Lessons:
    """What one list of tools taught. `hidden` are the places of tools that policy denies whatever their arguments."""

    names: Mapping[Key, Shown] = field(default_factory=dict)
    altered: tuple[Altered, ...] = ()
    hidden: tuple[tuple[str, Path], ...] = ()

    def told(self, call: ToolCall) -> Shown | None:
        """Return what the request showed a call's name to be."""
        return self.names.get((fold(call.namespace).rstrip("_"), fold(call.name)))

    def applied(self, call: ToolCall) -> ToolCall:
        """Return a call with what the request showed its name, and the names of the calls within it, to be."""
        if not self.names:
            return call
        inner = inner_calls(call)
        shown = self.told(call)
        if shown is None and not inner:
            return call
        return replace(call, shown=shown, inner=tuple(replace(each, shown=self.told(each)) for each in inner))


NOTHING = Lessons()


def joined(several: Sequence[Lessons]) -> Lessons:
    """Return what several lists taught of names; what they offered is none of it."""
    if len(several) == 1:
        return several[0]
    names: dict[Key, Shown] = {}
    for lessons in several:
        for key, shown in lessons.names.items():
            names[key] = shown if key not in names else names[key].with_(shown)
    return Lessons(names) if names else NOTHING


class Teacher:
    """The registered tools of one snapshot, by what a model reads of them."""

    __slots__ = ("_snapshot", "_twins")

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._twins: dict[tuple[str, tuple[str, ...]], list[Candidate]] = {}
        for tool in snapshot.registry.tools.values():
            if tool.outline.telling:
                key = tool.outline.description, tool.outline.texts
                self._twins.setdefault(key, []).append(Candidate(tool.server_id, tool.name, tool.hash))

    def learn(self, offers: Iterable[Offer]) -> Lessons:
        """Return what these offers teach."""
        names: dict[Key, Shown] = {}
        altered: list[Altered] = []
        hidden: list[tuple[str, Path]] = []
        for offer in offers:
            call = ToolCall(offer.name, namespace=offer.namespace)
            shown, changed = self._read(offer, call)
            if changed is not None:
                altered.append(changed)
            if shown is not None:
                key = fold(offer.namespace).rstrip("_"), fold(offer.name)
                first = names.get(key)
                names[key] = shown if first is None else first.with_(shown)
            if offer.path and self._snapshot.judge_offer(_shown_as(call, shown)).blocked:
                hidden.append((offer.name, offer.path))
        return Lessons(names, tuple(altered), tuple(hidden))

    def _read(self, offer: Offer, call: ToolCall) -> tuple[Shown | None, Altered | None]:
        says = outline.of(offer.description, offer.schema, offer.name)
        spelled = self._snapshot.meant(call)
        if any(not self._fields(candidate, says, offer) for candidate in spelled):
            return None, None
        twins = tuple(self._twins.get((says.description, says.texts), ()))
        if not spelled and self._snapshot.judge_offer(call).denied:
            # What is refused for being unknown is let pass only under a name that a client may have made.
            twins = tuple(c for c in twins if _related(offer.name, c.tool))
        if twins or not spelled:
            return (Shown(twins) if twins else None), None
        about = spelled[0]
        surely = bool(offer.namespace) or fold(offer.name) not in aliases.all_tails(about.tool)
        changed = Altered(offer.name, about, _hash(offer), self._fields(about, says, offer), surely)
        return (Shown(altered=" and ".join(changed.fields)) if surely else None), changed

    def _fields(self, candidate: Candidate, says: Outline, offer: Offer) -> tuple[str, ...]:
        """Say in what an offer differs from a registered tool."""
        tool = self._snapshot.registry.tool(candidate.server_id, candidate.tool)
        if tool is None or tool.outline == outline.NOTHING:
            return ()
        return outline.differences(tool.outline, says, offer.description)


def _shown_as(call: ToolCall, shown: Shown | None) -> ToolCall:
    return call if shown is None else ToolCall(call.name, namespace=call.namespace, shown=shown)


def _related(name: str, tool: str) -> bool:
    """Say whether a client may have made this name of the tool's: a copied definition must not lend its tool's rights."""
    here, there = (NOT_ALNUM.sub("", fold(text)) for text in (name, tool))
    return len(there) >= SHORTEST_SHARED and (
        there in here or here.startswith(there[:24]) or there.startswith(here)
    )


def _hash(offer: Offer) -> str:
    try:
        return canonical.hash_of({"description": offer.description, "inputSchema": offer.schema})
    except (ProtocolError, TypeError):
        return ""
