"""How agent clients spell (server, tool) on the wire: which characters they replace, what they put in between, where they cut.

Measured from the clients; every spelling is generated forwards. What a spelling means is core.names' business.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha1

from agentsh_net.core.folding import fold, normal

BARE, MCP, MCP2 = "", "mcp_", "mcp__"
SEPARATORS = ("_", "__", "-", ".", "/", ":")


@dataclass(frozen=True, slots=True)
class Style:
    """One way of replacing characters (`replaced` by `by`), and what stands before and after the server."""

    replaced: re.Pattern[str] | None
    by: str
    prefixes: tuple[str, ...]
    separators: tuple[str, ...]

    def spell(self, text: str) -> set[str]:
        """Return the folded spellings of a server id or tool name: with and without outer space, per character and per UTF-16 unit."""
        if self.replaced is None:
            return {fold(text), normal(text)}
        spelled = {self.replaced.sub(self.by, text)}
        if not text.isascii():  # JavaScript replaces each half of a surrogate pair
            spelled.add(self.replaced.sub(lambda m: self.by * (1 + (ord(m[0]) > 0xFFFF)), text))
        if self is PLAIN:  # openai-agents strips both ends
            spelled |= {s.strip("_-") for s in spelled}
            if text.startswith("claude.ai "):  # connectors: Claude Code squeezes their names
                spelled |= {re.sub("_+", "_", s).strip("_") for s in spelled}
        return {fold(s) for s in spelled if s} | {normal(s) for s in spelled if s}


RAW = Style(None, "", (BARE, MCP, MCP2), SEPARATORS)  # LangChain, Cline, gateways
PLAIN = Style(
    re.compile(r"[^A-Za-z0-9_-]"), "_", (BARE, MCP, MCP2), SEPARATORS
)  # Claude Code, OpenCode, VS Code
CODEX = Style(re.compile(r"[^A-Za-z0-9_]"), "_", (BARE, MCP2), ("__",))
COPILOT = Style(re.compile(r"[^A-Za-z0-9_-]"), "-", (BARE,), ("-",))
GEMINI = Style(re.compile(r"[^A-Za-z0-9_.:-]"), "_", (BARE, MCP), ("_", "__"))
GEMINI_OLD = Style(re.compile(r"[^A-Za-z0-9_.-]"), "_", (BARE,), ("__",))
STYLES = (RAW, PLAIN, CODEX, COPILOT, GEMINI, GEMINI_OLD)

CLEAN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_]*[A-Za-z0-9])?")  # what every style leaves alone


SHORT = re.compile(r"[A-Za-z0-9_-]+")  # what no client recodes while it is short


def heads(server_id: str, style: Style) -> frozenset[str]:
    """Return what may stand before the tool's name in this style, folded."""
    spelled = style.spell(server_id)
    found = {p + s + sep for s in spelled for p in style.prefixes for sep in style.separators}
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
    gemini = _sub(GEMINI, f"mcp_{server}_{tool}")
    if len(gemini) > 63:
        yield f"{gemini[:30]}...{gemini[-30:]}"
    for old in (_sub(GEMINI_OLD, tool), _sub(GEMINI_OLD, f"{server}__{tool}")):
        if len(old) > 63:
            yield f"{old[:28]}___{old[-32:]}"
    for raw in (f"mcp__{server}__{tool}", f"{server}__{tool}"):  # Codex before namespaces
        for name in {_sub(CODEX, raw), _sub(PLAIN, raw)}:
            if len(name) > 64:
                yield name[:24] + _sha1(raw)
    cline = f"{server}__{tool}"
    if len(cline) > 64 or _sub(PLAIN, cline) != cline:
        yield f"{_sub(PLAIN, cline)[:55]}_{_sha1(cline)[:8]}"
    for seed in (f"{server}\0{tool}", tool, f"mcp_{server}_{tool}", f"mcp_{server}__{tool}"):  # openai-agents
        for separator in ("_", "__"):
            s, t = (_sub(PLAIN, part).strip("_-") for part in (server, tool))
            base = t if seed == tool else f"mcp_{s}{separator}{t}"
            if len(base) > 64:
                yield f"{base[:55].rstrip('_-')}_{_sha1(seed)[:8]}"
    copilot = f"{server}-{tool}"
    yield _sub(COPILOT, copilot)[:64]
    if not copilot.isascii():
        yield _sub(COPILOT, punycode(copilot))[:64]
        yield f"{_sub(COPILOT, punycode(server))}-{_sub(COPILOT, punycode(tool))}"[:64]
    for raw in (f"mcp_{label(server)}_{tool}".replace(".", "_"), f"mcp_{server}_{tool}"):  # VS Code
        yield _sub(PLAIN, raw)[:64]


def _sub(style: Style, text: str) -> str:
    return style.replaced.sub(style.by, text) if style.replaced else text


def _sha1(text: str) -> str:
    return sha1(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()
