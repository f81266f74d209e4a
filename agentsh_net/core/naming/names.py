"""What the name a model uses may mean: registered tools, pairs that a deny rule names, tools of a server that the name binds.

Everything a name may mean is returned; whether any of it is allowed is core.verdicts.policy's business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from agentsh_net.core.model import Candidate, ToolCall
from agentsh_net.core.naming import aliases, loose_names
from agentsh_net.core.naming.alias_index import SHORTEST_STEM, AliasIndex, stem
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.registry import Registry
from agentsh_net.core.verdicts.rules import Rules

# `mcp__a__b__c` of no declared server is split at each delimiter; a name has 128 characters at most, ids rarely three delimiters.
MAX_SPLITS = 16

# Tools of Cline, Roo Code and Cursor that carry the pair in their arguments.
WRAPPERS = frozenset({"use_mcp_tool", "call_mcp_tool"})
SERVER_KEYS = frozenset({"servername", "server"})
_PLAIN_MCP = "mcp"
TOOL_KEYS = frozenset({"toolname", "tool", "name"})


class Resolution(NamedTuple):
    """What a name may mean. Only `registered` has been seen; `bound` names its server beyond doubt, `guessed` may be chance."""

    registered: tuple[Candidate, ...] = ()
    bound: tuple[Candidate, ...] = ()
    guessed: tuple[Candidate, ...] = ()
    looks_mcp: bool = False


class Names:
    """The index of one snapshot."""

    def __init__(self, registry: Registry, rules: Rules) -> None:
        self._registry = registry
        self._seen = AliasIndex(Candidate(t.server_id, t.name, t.hash) for t in registry.tools.values())
        self._denied = AliasIndex(self._unseen(rules.denied_pairs()))
        self._denied_tools = _by_spelling(rules.denied_anywhere())
        ids = [s.id for s in registry.servers] + [key[0] for key in registry.tools]
        ids += [registry.canonical_id(i) for i in rules.denied_ids()]
        by_fold = {fold(i): i for i in reversed(ids)}
        self._ids = tuple(by_fold.values())
        self._called_mcp = by_fold.get(_PLAIN_MCP)  # its own names look like everybody's
        self._heads, self._namespaces, self._labels = _server_spellings(self._ids)
        self._head_lengths = _lengths(self._heads)

    def resolve(self, call: ToolCall) -> Resolution:
        """Return everything a call may mean: what its name spells, and what the request showed it to be."""
        return self.resolve_wrapped(call, wrapped_pair(call))

    def resolve_wrapped(self, call: ToolCall, wrapped: tuple[str, str] | None) -> Resolution:
        """As `resolve`, of a call whose `wrapped_pair` is known."""
        learned = call.shown.candidates if call.shown is not None else ()
        meant = self._spelled(call, learned, wrapped)
        return meant._replace(registered=_unique((*meant.registered, *learned))) if learned else meant

    def _spelled(
        self, call: ToolCall, learned: tuple[Candidate, ...], wrapped: tuple[str, str] | None
    ) -> Resolution:
        name = fold(call.name)
        if wrapped is not None:
            return self._of_server(self._servers_named(wrapped[0]), fold(wrapped[1]), wrapped[1])
        if call.server_name:
            return self._of_server(self._servers_named(call.server_name), name, call.name)
        if call.namespace:
            return self._namespaced(call, name)
        return self._flat(name, call.name, learned)

    def _flat(self, name: str, raw: str, learned: tuple[Candidate, ...] = ()) -> Resolution:
        """Resolve a name that stands alone; what is learned of it leaves less to guess."""
        looks_mcp = aliases.looks_mcp(name)
        seen = (*self._seen.find(name), *learned) or self._seen.find_cut(name)
        unseen = self._denied.find(name)
        if not seen:
            unseen += self._denied.find_cut(name)
            unseen += self._renamed(name)
        sure, chance = self._by_prefix(name, raw, seen)
        if not (seen or unseen):
            chance += self._likened(name)
        # That a rule names a server says nothing of those whose names begin alike: one rule more must not leave less to judge.
        if looks_mcp and not seen and not any(map(self._is_known, (*unseen, *sure))):
            sure += [*self._numbered(name), *self._undeclared(name, raw)]
        return Resolution(
            _unique(seen), _unique((*unseen, *sure)), _unique(chance), looks_mcp or name in WRAPPERS
        )

    def _is_known(self, candidate: Candidate) -> bool:
        server_id = candidate.server_id
        return self._registry.server(server_id) is not None or bool(self._registry.tools_of(server_id))

    def _likened(self, name: str) -> Iterator[Candidate]:
        """Yield the pairs that some client may mean by a name that spells none in any way we know forwards."""
        readings = loose_names.readings(name)
        for index in (self._seen, self._denied):
            if index.empty:
                continue
            yield from index.find_alike(name)
            for reading in readings:
                yield from (*index.find(reading), *index.find_alike(reading))

    def _renamed(self, name: str) -> tuple[Candidate, ...]:
        """Return the pairs that a client may have renamed to this; a hash we cannot repeat proves nothing, so it is not seen."""
        begins = stem(name)
        return (*self._seen.find(begins), *self._denied.find(begins)) if begins else ()

    def _by_prefix(
        self, name: str, raw: str, seen: tuple[Candidate, ...]
    ) -> tuple[list[Candidate], list[Candidate]]:
        """Return what the name means if it begins with a server: surely meant (`mcp_...`), and perhaps by chance.

        Nothing is guessed about a server that has a tool of this spelling, nor about one whose tools are known where
        somebody else's tool has it. That a tool is called `mcp__fs__read` makes it nobody else's, so fs stays meant.
        """
        matched: dict[str, int] = {}  # the longest head of each server
        heads, longest = self._heads, len(name) - 1
        for end in self._head_lengths.get(name[:1], ()):
            if end > longest:
                break
            for server_id in heads.get(name[:end], ()):
                matched[server_id] = end
        sure: list[Candidate] = []
        chance: list[Candidate] = []
        if not matched:
            return sure, chance
        hit = {c.server_id for c in seen} if seen else ()
        looks_mcp = aliases.looks_mcp(name)
        text = raw.strip()
        if len(text) != len(name):
            text = name
        for server_id, end in matched.items():
            if server_id in hit:
                continue
            certain = looks_mcp and server_id != self._called_mcp
            if seen and self._registry.tools_of(server_id):
                taken = (c for c in seen if not certain or name not in aliases.all_tails(c.tool))
                if any(taken):
                    continue
            (sure if certain else chance).extend(self._tools_like(server_id, text[end:]))
        return sure, chance

    def _tools_like(self, server_id: str, tool: str) -> list[Candidate]:
        """Return an unseen tool of a server under this name, and under each name a deny rule has for this spelling."""
        alike = [Candidate(server_id, tool)]
        if self._denied_tools and (literals := self._denied_tools.get(fold(tool))):
            alike += [Candidate(server_id, text) for text in literals if fold(text) != fold(tool)]
        return alike

    def unplaced(self, name: str) -> tuple[str, ...]:
        """Return the tool names that a name of no known server may stand for."""
        names = (name, *loose_names.readings(name))
        spelled = (fold(t) for each in names for t in self._denied_tools.get(each, ()))
        return tuple(dict.fromkeys((*names, *spelled)))

    def _numbered(self, name: str) -> Iterator[Candidate]:
        """Yield what VS Code means by `mcp_<label><n>_<tool>`, its name for the second server of one label."""
        for end in range(len(aliases.MCP) + 2, min(len(name), 19)):
            if name[end] == "_" and name[end - 1].isdigit():
                for server_id in self._labels.get(name[len(aliases.MCP) : end - 1], ()):
                    tool = name[end + 1 :]
                    spelled = [
                        t for t in self._registry.tools_of(server_id) if tool in aliases.all_tails(t.name)
                    ]
                    yield from (Candidate(t.server_id, t.name, t.hash) for t in spelled)
                    yield from self._tools_like(server_id, tool)

    def _undeclared(self, name: str, raw: str) -> Iterator[Candidate]:
        """Yield the pairs of an MCP name whose server nobody declared, split wherever it can be.

        What follows the server may be a gateway's name for a tool of a declared server.
        """
        text = raw.strip() if len(raw.strip()) == len(name) else name
        joints = (aliases.MCP2, "__"), (aliases.DASHED, "--"), (aliases.MCP, "_")
        prefix, separator = next(joint for joint in joints if name.startswith(joint[0]))
        at = len(prefix)
        for _ in range(MAX_SPLITS):
            at = name.find(separator, at + 1)
            rest = at + len(separator)
            if at < 0 or rest >= len(name):
                return
            yield from self._tools_like(text[len(prefix) : at], text[rest:])
            behind = fold(name[rest:])
            for index in (self._seen, self._denied):
                yield from (c for c in index.find(behind) if behind not in aliases.all_tails(c.tool))

    def _namespaced(self, call: ToolCall, name: str) -> Resolution:
        """Resolve a call that carries its namespace beside its name (Codex)."""
        namespace = fold(call.namespace).rstrip("_")
        server_ids = self._namespaces.get(namespace) or self._cut_namespace(stem(namespace))
        if server_ids:
            return self._of_server(server_ids, name, call.name, len(call.namespace) + len("__"))
        if namespace.startswith(aliases.MCP):
            bare = namespace.removeprefix(aliases.MCP2).removeprefix(aliases.MCP)
            return self._of_server((bare,), name, call.name)
        joined = (self._flat(f"{namespace}{s}{name}", f"{namespace}{s}{call.name}") for s in ("__", "."))
        whole = [*joined, self._flat(name, call.name)]
        return Resolution(
            _unique(c for r in whole for c in r.registered),
            _unique(c for r in whole for c in r.bound),
            _unique(c for r in whole for c in r.guessed),
            any(r.looks_mcp for r in whole),
        )

    def _cut_namespace(self, begins: str) -> list[str]:
        """Return the servers of a namespace that lost its end to a hash, or that was renamed because two clash."""
        if begins in self._namespaces or len(begins) < SHORTEST_STEM:
            return self._namespaces.get(begins, [])
        long = (ids for spelled, ids in self._namespaces.items() if spelled.startswith(begins))
        return [server_id for ids in long for server_id in ids]

    def _servers_named(self, server_id: str) -> tuple[str, ...]:
        return (self._registry.canonical_id(server_id),)

    def _of_server(self, server_ids: Iterable[str], name: str, raw: str, used: int = 0) -> Resolution:
        """Resolve the name of a tool whose server is known: only this server's tools are meant.

        `used` is the length of what the client sends beside the name; Codex cuts both together to 64.
        """
        seen: list[Candidate] = []
        unseen: list[Candidate] = []
        for server_id in server_ids:
            mine = [c for c in self._seen.find(name) if _same(c.server_id, server_id)]
            if not mine and used + len(name) >= aliases.CODEX_LENGTH:
                mine = list(self._beginning(server_id, stem(name)))
            if not mine:
                unseen += (c for c in self._renamed(name) if _same(c.server_id, server_id))
                unseen += self._tools_like(server_id, raw.strip() or name)
            seen += mine
            unseen += (c for c in self._denied.find(name) if _same(c.server_id, server_id))
        return Resolution(_unique(seen), _unique(unseen), looks_mcp=True)

    def _beginning(self, server_id: str, begins: str) -> Iterator[Candidate]:
        """Yield a server's tools that were cut to this beginning."""
        for tool in self._registry.tools_of(server_id) if begins else ():
            if any(spelled.startswith(begins) for spelled in aliases.all_tails(tool.name)):
                yield Candidate(tool.server_id, tool.name, tool.hash)

    def _unseen(self, pairs: Iterable[tuple[str, str]]) -> Iterator[Candidate]:
        """Yield the pairs that are not registered, under the server's declared id."""
        for server_id, tool in pairs:
            known = {fold(t.name) for t in self._registry.tools_of(server_id)}
            if fold(tool) not in known:
                yield Candidate(self._registry.canonical_id(server_id), tool)


def wrapped_pair(call: ToolCall) -> tuple[str, str] | None:
    """Return the server and tool that a wrapper's arguments name, or None where this is no such call."""
    if fold(call.name) not in WRAPPERS or not isinstance(call.input, Mapping):
        return None
    server_id, tool = (_argument(call.input, keys) for keys in (SERVER_KEYS, TOOL_KEYS))
    return (server_id, tool) if server_id and tool else None


def _argument(arguments: Mapping[str, Any], keys: frozenset[str]) -> str:
    values = (v for k, v in arguments.items() if k.replace("_", "").lower() in keys and isinstance(v, str))
    return next(values, "")


def _same(one_id: str, other_id: str) -> bool:
    return fold(one_id) == fold(other_id)


def _unique(candidates: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return each pair once: what is not seen is one where it folds to one, what is seen where its definition is."""
    candidates = tuple(candidates)
    if len(candidates) < 2:  # nearly always: folding it would cost a microsecond of a first verdict
        return candidates
    found: dict[tuple[str, str, str], Candidate] = {}
    for candidate in candidates:
        found.setdefault((fold(candidate.server_id), fold(candidate.tool), candidate.tool_hash), candidate)
    return tuple(found.values())


def _by_spelling(tools: Iterable[str]) -> dict[str, list[str]]:
    spelled: dict[str, list[str]] = {}
    for tool in tools:
        for tail in aliases.all_tails(tool):
            spelled.setdefault(tail, []).append(tool)
    return spelled


Spellings = dict[str, list[str]]


def _server_spellings(server_ids: Iterable[str]) -> tuple[Spellings, Spellings, Spellings]:
    """Return the servers by what stands before a tool, by their namespaces, and by their VS Code labels."""
    heads: Spellings = {}
    namespaces: Spellings = {}
    labels: Spellings = {}
    for server_id in server_ids:
        spelled: set[str] = set()
        for style in aliases.STYLES:
            spelled |= aliases.heads(server_id, style)
            for name in style.spell(server_id):
                namespaces.setdefault(f"mcp__{name}".rstrip("_"), []).append(server_id)
                namespaces.setdefault(name.rstrip("_"), []).append(server_id)
        for head in spelled:
            heads.setdefault(head, []).append(server_id)
        short = fold(aliases.label(server_id)).replace(".", "_")
        for cut in {short, short[: aliases.LABEL_LENGTH - 1]}:
            labels.setdefault(cut, []).append(server_id)
    unique = {k: list(dict.fromkeys(v)) for k, v in namespaces.items()}
    return heads, unique, labels


def _lengths(heads: Iterable[str]) -> dict[str, list[int]]:
    """Return how long those are that begin with each letter: a name is cut at no more places than its own letter's."""
    lengths: dict[str, set[int]] = {}
    for head in heads:
        lengths.setdefault(head[:1], set()).add(len(head))
    return {letter: sorted(found) for letter, found in lengths.items()}
