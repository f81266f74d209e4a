"""The allow and deny lists of a policy, ready to ask: which rule speaks about this server, about this tool.

Literal rules sit in tables, so that a thousand of them cost what one costs. What a match leads to is core.verdicts.policy's business.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from agentsh_net.core.configuration.settings import Mcp, ServerRule, ToolRule
from agentsh_net.core.naming import globs
from agentsh_net.core.naming.folding import fold, visible
from agentsh_net.core.naming.globs import Glob
from agentsh_net.core.verdicts.argument_rules import ArgumentRule

ROOT = "sandbox.mcp"


@dataclass(frozen=True, slots=True)
class Rule:
    """One entry of a list. `tool` is the bare `*` in a rule over servers."""

    server: Glob
    tool: Glob
    content_hash: str
    path: str
    order: int
    args: ArgumentRule | None = None

    @property
    def bare(self) -> bool:
        """Say whether the rule is the catch-all, which in a deny list is the default for what no allow rule names."""
        return self.server.every and self.tool.every and not self.content_hash and self.args is None

    @property
    def shown(self) -> str:
        """Return the rule as a reason quotes it: where it stands, and what it says."""
        server = "" if self.server.every else f"server {visible(self.server.pattern)}"
        tool = "" if self.tool.every else f"tool {visible(self.tool.pattern)}"
        version = f"version {self.content_hash}" if self.content_hash else ""
        args = f"args {self.args.shown}" if self.args else ""
        said = ", ".join(part for part in (server, tool, version, args) if part) or "*"
        return f"{self.path.removeprefix(ROOT + '.')} ({said})"


class _Beginnings:
    """Rules with wildcards by what their pattern begins with: of a thousand, those are tried whose beginning is the name's."""

    __slots__ = ("_lengths", "_rules")

    def __init__(self) -> None:
        self._rules: dict[str, list[Rule]] = {}
        # By the first letter; of patterns that begin with none, under "".
        self._lengths: dict[str, list[int]] = {}

    def add(self, begins: str, rule: Rule) -> None:
        """Take the next rule of the file."""
        self._rules.setdefault(begins, []).append(rule)
        lengths = self._lengths.setdefault(begins[:1], [])
        if len(begins) not in lengths:
            insort(lengths, len(begins))

    def of(self, name: str) -> list[list[Rule]]:
        """Return the rules whose patterns may match a folded name, in file order where they begin alike."""
        found: list[list[Rule]] = []
        if not self._rules:
            return found
        if "" in self._rules:
            found.append(self._rules[""])
        for length in self._lengths.get(name[:1], ()) if name else ():
            if length > len(name):
                break
            alike = self._rules.get(name[:length])
            if alike is not None:
                found.append(alike)
        return found


_NONE: Final = _Beginnings()


class RuleList:
    """One list, in file order. The first rule that matches is the one that is named.

    Rules over arguments stand apart: whether one holds is a matter of the call, not of its name.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self.rules = tuple(rules)
        self._narrowed: dict[str | None, list[Rule]] = {}  # by the tool's literal name; None: patterns
        self._pairs: dict[tuple[str, str], list[Rule]] = {}
        self._by_tool: dict[str, list[Rule]] = {}
        self._by_server: dict[str, list[Rule]] = {}  # that name every tool
        self._of_server: dict[str, _Beginnings] = {}  # by the tool's pattern, of one server
        self._of_tools = _Beginnings()  # by the tool's pattern, where the server has one too
        self._of_servers = _Beginnings()  # by the server's pattern, where the rule names every tool
        for rule in self.rules:
            if rule.args is not None:
                self._narrowed.setdefault(rule.tool.literal, []).append(rule)
                continue
            server, tool = rule.server.literal, rule.tool.literal
            if server is not None and tool is not None:
                self._pairs.setdefault((server, tool), []).append(rule)
            elif server is not None and rule.tool.every:
                self._by_server.setdefault(server, []).append(rule)
            elif server is not None:
                self._of_server.setdefault(server, _Beginnings()).add(rule.tool.begins, rule)
            elif tool is not None:
                self._by_tool.setdefault(tool, []).append(rule)
            elif rule.tool.every:
                self._of_servers.add(rule.server.begins, rule)
            else:
                self._of_tools.add(rule.tool.begins, rule)

    @property
    def looks_at_arguments(self) -> bool:
        """Say whether any rule does."""
        return bool(self._narrowed)

    def narrowed(self, server: str, tool: str, tool_hash: str = "") -> tuple[Rule, ...]:
        """Return the rules over the arguments of this tool, in file order."""
        if not self._narrowed:
            return ()
        found = (
            rule
            for rule in (*self._narrowed.get(tool, ()), *self._narrowed.get(None, ()))
            if rule.tool.matches(tool)
            and rule.server.matches(server)
            and rule.content_hash in ("", tool_hash)
        )
        return tuple(sorted(found, key=lambda rule: rule.order))

    def narrowed_anywhere(self, tool: str, *, by_name: bool = False) -> tuple[Rule, ...]:
        """Return the rules over the arguments of this tool on every server; `by_name` leaves out those with wildcards."""
        # An empty id matches the bare `*` alone, and an empty hash no version.
        return tuple(r for r in self.narrowed("", tool) if not by_name or r.tool.literal is not None)

    def first(self, server: str, tool: str = "", tool_hash: str = "") -> Rule | None:
        """Return the first rule about a folded server id and tool name. A version narrows only what is known to be that version."""
        found: Rule | None = None
        if not self.rules:
            return None
        for bucket in (
            self._pairs.get((server, tool), ()),
            self._by_server.get(server, ()),
            self._by_tool.get(tool, ()),
            *self._of_server.get(server, _NONE).of(tool),
            *self._of_tools.of(tool),
            *self._of_servers.of(server),
        ):
            for rule in bucket:
                if (
                    rule.tool.matches(tool)
                    and rule.server.matches(server)
                    and rule.content_hash in ("", tool_hash)
                ):
                    found = rule if found is None or rule.order < found.order else found
                    break
        return found

    def first_anywhere(self, tool: str, *, by_name: bool = False) -> Rule | None:
        """Return the first rule that names this tool on every server: what holds for a server that nobody can name.

        `by_name` leaves out rules with wildcards.
        """
        buckets = (self._by_tool.get(tool, ()), *(() if by_name else self._of_tools.of(tool)))
        wide = (rule for bucket in buckets for rule in bucket if rule.server.every and not rule.content_hash)
        return min((r for r in wide if r.tool.matches(tool)), key=lambda r: r.order, default=None)


class Rules:
    """The four lists. Raises ConfigError for a bad pattern, which core.configuration.config has told already."""

    def __init__(self, mcp: Mcp) -> None:
        denied_servers = tuple(_server_rules(mcp.denied_servers, "denied_servers"))
        denied_tools = tuple(_tool_rules(mcp.denied_tools, "denied_tools"))
        self.allowed_servers = RuleList(_server_rules(mcp.allowed_servers, "allowed_servers"))
        self.denied_servers = RuleList(r for r in denied_servers if not r.bare)
        self.other_servers = next((r for r in denied_servers if r.bare), None)
        self.allowed_tools = RuleList(_tool_rules(mcp.allowed_tools, "allowed_tools"))
        self.denied_tools = RuleList(r for r in denied_tools if not r.bare)
        self.other_tools = next((r for r in denied_tools if r.bare), None)

    def confine(self, server: str) -> tuple[bool, bool]:
        """Say whether a rule denies a tool of a folded server, and whether one looks at arguments of its tools."""
        denied = [rule for rule in self.denied_tools.rules if rule.server.matches(server)]
        allowed = (rule for rule in self.allowed_tools.rules if rule.server.matches(server))
        return bool(denied), any(rule.args is not None for rule in (*denied, *allowed))

    def denied_pairs(self) -> Iterator[tuple[str, str]]:
        """Yield each (server, tool) that a deny rule names without wildcards, as it is written."""
        for rule in self.denied_tools.rules:
            if rule.server.literal is not None and rule.tool.literal is not None:
                yield rule.server.pattern.strip(), rule.tool.pattern.strip()

    def denied_anywhere(self) -> Iterator[str]:
        """Yield each tool that a deny rule names without wildcards, for more than one server."""
        for rule in self.denied_tools.rules:
            if rule.server.literal is None and rule.tool.literal is not None:
                yield rule.tool.pattern.strip()

    def denied_ids(self) -> Iterator[str]:
        """Yield each server that a deny rule names without wildcards, as it is written."""
        for rule in (*self.denied_servers.rules, *self.denied_tools.rules):
            if rule.server.literal is not None:
                yield rule.server.pattern.strip()


def _server_rules(rules: Iterable[ServerRule], name: str) -> Iterator[Rule]:
    for order, rule in enumerate(rules):
        path = rule.path or f"{ROOT}.{name}[{order}]"
        yield Rule(globs.parse(rule.id, path), globs.parse("*"), "", path, order)


def _tool_rules(rules: Iterable[ToolRule], name: str) -> Iterator[Rule]:
    for order, rule in enumerate(rules):
        path = rule.path or f"{ROOT}.{name}[{order}]"
        server, tool = globs.parse(rule.server, path), globs.parse(rule.tool, path)
        args = ArgumentRule(rule.args) if rule.args else None
        yield Rule(server, tool, full_hash(rule.content_hash), path, order, args)


def full_hash(content_hash: str) -> str:
    """Return a content hash with its algorithm named; the file may leave `sha256:` out."""
    bare = fold(content_hash)
    return f"sha256:{bare}" if bare and ":" not in bare else bare
