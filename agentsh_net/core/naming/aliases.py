"""How agent clients spell (server, tool) on the wire: which characters they replace, what they put in between, where they cut.

Measured from the clients; every spelling is generated forwards. What a spelling means is core.naming.names' business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha1

from agentsh_net.core.naming.folding import fold, normal

# Gemini CLI, VS Code, openai-agents; Claude Code, Codex; Roo Code.
MCP, MCP2, DASHED = "mcp_", "mcp__", "mcp--"

Joint = tuple[str, str]  # what stands before the server, what stands behind it

JOINTS: tuple[Joint, ...] = (
    *(("", separator) for separator in ("_", "__", "___", "-", ".", "/", ":")),
    (MCP, "_"),
    (MCP, "__"),
    (MCP2, "__"),
    (DASHED, "--"),
)


@dataclass(frozen=True, slots=True)
class Style:
    """One way of replacing characters (`replaced` by `by`), and of joining server and tool."""

    replaced: re.Pattern[str] | None
    by: str
    joints: tuple[Joint, ...]

    def replace(self, text: str) -> set[str]:
        """Replace per character, as Rust and Python do, and per UTF-16 unit, as JavaScript does with surrogate pairs."""
        if self.replaced is None:
            return {text}
        once = self.replaced.sub(self.by, text)
        if text.isascii():
            return {once}
        return {once, self.replaced.sub(lambda m: self.by * (1 + (ord(m[0]) > 0xFFFF)), text)}

    def spell(self, text: str) -> set[str]:
        """Return the folded spellings of a server id or a tool's name, with and without outer space."""
        spelled = self.replace(text)
        if self is PLAIN:  # openai-agents strips both ends
            spelled |= {s.strip("_-") for s in spelled}
            if text.startswith("claude.ai "):  # connectors: Claude Code squeezes their names
                spelled |= {re.sub("_+", "_", s).strip("_") for s in spelled}
        return {form for s in spelled if s for form in (fold(s), normal(s))}


NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]")

RAW = Style(None, "", JOINTS)  # LangChain, Cline, gateways
PLAIN = Style(NOT_PLAIN, "_", JOINTS)  # Claude Code, OpenCode, VS Code, openai-agents
CODEX = Style(re.compile(r"[^A-Za-z0-9_]"), "_", (("", "__"), (MCP2, "__")))
COPILOT = Style(NOT_PLAIN, "-", (("", "-"),))
GEMINI = Style(re.compile(r"[^A-Za-z0-9_.:-]"), "_", ((MCP, "_"), ("", "__")))
GEMINI_OLD = Style(re.compile(r"[^A-Za-z0-9_.-]"), "_", (("", "__"),))
STYLES = (RAW, PLAIN, CODEX, COPILOT, GEMINI, GEMINI_OLD)

CLEAN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_]*[A-Za-z0-9])?")  # what every style leaves alone
SHORT = re.compile(r"[A-Za-z0-9_-]+")  # what no client recodes while it is short


def looks_mcp(name: str) -> bool:
    """Say whether a folded name begins as clients begin the names of MCP tools."""
    return name.startswith((MCP, DASHED))


def heads(server_id: str, style: Style) -> frozenset[str]:
    """Return what may stand before the tool's name in this style, folded."""
    spelled = style.spell(server_id)
    found = {before + s + behind for s in spelled for before, behind in style.joints}
    if style is PLAIN:
        found.add(f"mcp_{label(server_id)}_".replace(".", "_"))
    if style is COPILOT and not server_id.isascii():
        found |= {s + "-" for s in COPILOT.spell(punycode(server_id))}
    return frozenset(found)


def tails(tool: str, style: Style) -> frozenset[str]:
    """Return the spellings of the tool's name in this style, folded."""
    found = style.spell(tool)
    if style is COPILOT and not tool.isascii():
        found |= COPILOT.spell(punycode(tool))
    return frozenset(t for t in found if t)


def all_tails(tool: str) -> frozenset[str]:
    """Return the spellings of a tool's name in every style."""
    return frozenset().union(*(tails(tool, style) for style in STYLES))


LABEL_LENGTH = 13  # VS Code: a prefix of 18 characters, of which `mcp_` and a `_`


def label(server_id: str) -> str:
    """Return the server's part of a VS Code name; its real source is the title that the server gives itself."""
    return re.sub(r"[^a-z0-9_.-]+", "_", server_id.lower())[:LABEL_LENGTH]


def punycode(text: str) -> str:
    """Return text as punycode's toASCII has it (RFC 3492): each label that is not ASCII gets `xn--`."""
    return ".".join(
        p if p.isascii() else "xn--" + p.encode("punycode").decode("ascii") for p in text.split(".")
    )


# The shortest whole spelling that any client cuts is 64 characters, and `mcp__` and `__` are seven of them.
UNCUT = 56

# Codex: namespace, two characters in reserve and name together.
CODEX_LENGTH = 64


def cut_forms(server_id: str, tool: str) -> frozenset[str]:
    """Return the spellings that are cut, hashed or recoded as a whole, folded; empty for the many pairs that never are."""
    if len(server_id) + len(tool) <= UNCUT and SHORT.fullmatch(server_id + tool):
        return frozenset()
    return frozenset(map(fold, _cut_forms(server_id, tool)))


def _cut_forms(server: str, tool: str) -> Iterator[str]:
    yield from _gemini(server, tool)
    yield from _codex(server, tool)
    yield from _cline(server, tool)
    yield from _openai_agents(server, tool)
    yield from _cut_at_64(server, tool)


def _gemini(server: str, tool: str) -> Iterator[str]:
    for name in GEMINI.replace(f"mcp_{server}_{tool}"):
        if len(name) > 63:
            yield f"{name[:30]}...{name[-30:]}"
    for raw in (tool, f"{server}__{tool}"):
        for name in GEMINI_OLD.replace(raw):
            if len(name) > 63:
                yield f"{name[:28]}___{name[-32:]}"


def _codex(server: str, tool: str) -> Iterator[str]:
    """Yield the names of Codex before it had namespaces."""
    for raw in (f"mcp__{server}__{tool}", f"{server}__{tool}"):
        for name in CODEX.replace(raw) | PLAIN.replace(raw):
            if len(name) > 64:
                yield name[:24] + _sha1(raw)


def _cline(server: str, tool: str) -> Iterator[str]:
    raw = f"{server}__{tool}"
    for name in PLAIN.replace(raw):
        if len(raw) > 64 or name != raw:
            yield f"{name[:55]}_{_sha1(raw)[:8]}"


def _openai_agents(server: str, tool: str) -> Iterator[str]:
    s, t = (NOT_PLAIN.sub("_", part).strip("_-") for part in (server, tool))
    seed = f"{server}\0{tool}"
    for name, seeds in ((f"mcp_{s}__{t}", (seed,)), (f"mcp_{s}_{t}", (seed,)), (t, (seed, tool))):
        if len(name) > 64:
            yield from (f"{name[:55].rstrip('_-')}_{_sha1(text)[:8]}" for text in seeds)


def _cut_at_64(server: str, tool: str) -> Iterator[str]:
    """Yield the names of Copilot CLI and VS Code, which cut without a hash."""
    dashed = [f"{server}-{tool}"]
    if not dashed[0].isascii():
        dashed += [punycode(dashed[0]), f"{punycode(server)}-{punycode(tool)}"]
    for raw in dashed:
        yield from (name[:64] for name in COPILOT.replace(raw))
    for raw in (f"mcp_{label(server)}_{tool}", f"mcp_{server}_{tool}"):
        yield from (name[:64] for name in PLAIN.replace(raw))


def _sha1(text: str) -> str:
    return sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
