"""What a call of a tool does with data: reads it, sends it out, writes it, destroys it. From hints and from the tool's name.

Hints come from the server (MCP, ToolAnnotations) and are no promise: they may add a danger, and take away only the suspicion
of writing. What follows from a kind is core.flows.crossflow's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from typing import Any

from agentsh_net.core.flows.tool_numbers import takes_only_numbers
from agentsh_net.core.flows.tool_words import without_prefix, words


class Kind(Flag):
    """What a tool does; a tool may do several of these, or none that is known."""

    UNKNOWN = 0
    READ = auto()
    SEND = auto()
    WRITE = auto()
    DESTRUCTIVE = auto()


SINK = Kind.SEND | Kind.WRITE | Kind.DESTRUCTIVE

# Verbs that say what is done wherever they stand first.
_VERBS = {
    Kind.READ: """
        read get fetch list search find query lookup look view show describe browse download load open cat head tail retrieve
        inspect scan select count peek extract crawl scrape dump check stat tree grep glob diff summarize analyze watch explore
        discover resolve validate verify compare export traverse navigate lint ping
    """,
    Kind.SEND: """
        send forward reply respond notify publish broadcast transmit upload push submit dispatch deliver tweet announce invite
        relay dm sms fax webhook
    """,
    Kind.WRITE: """
        write create update edit set put add insert save append modify patch rename move upsert replace configure enable disable
        assign attach merge commit fork import sync store restore schedule apply register generate make mkdir touch
    """,
    Kind.DESTRUCTIVE: """
        delete remove drop destroy purge wipe truncate erase kill terminate reset clear uninstall revoke ban prune overwrite
        shutdown rm unlink evict
    """,
    Kind.WRITE | Kind.DESTRUCTIVE: "execute exec run eval invoke shell bash sudo spawn",
}  # fmt: skip
# Words that are verbs in one name and nouns in another: they count where no verb stands.
_NOUNS = {
    Kind.SEND: "post email mail message tweet share comment notification telegram slack",
    Kind.READ: "monitor map preview directions geocode info status log logs history details content contents report stats results docs documentation",
    Kind.WRITE: "note record mark label tag star copy draft transition",
}
# Words after which a second verb is another thing that is done: search_and_replace, read_then_send.
_JOINTS = frozenset({"and", "or", "then"})
# `execute_query` asks, `run_search` looks.
_ASKED = frozenset({"query", "search", "select", "lookup", "report"})
# `run_status` and `commit_history` tell of a run and of a commit.
_RECORDS = frozenset({"run", "commit"})
_TOLD = frozenset({"status", "details", "history", "info", "logs", "stats"})
# `log_expense` writes a log; `git_log` and `log_entries` read one.
_LOGGED = frozenset({"file", "files", "entries", "level", "levels", "lines", "viewer"}) | _TOLD
# `format_disk` is another thing than `format_date`; a file is rewritten.
_DISKS = frozenset(
    {"disk", "drive", "volume", "partition", "device", "filesystem", "storage", "usb", "sdcard"}
)
_FILES = frozenset({"file", "files", "document", "code", "source", "project", "workspace", "notebook"})
# `add_two_numbers`, `calculator_add`: a sum is written nowhere. What `add` alone does its arguments say.
_SUMS = frozenset(
    {
        "add",
        "two",
        "numbers",
        "integers",
        "ints",
        "floats",
        "decimals",
        "calculator",
        "calc",
        "math",
        "arithmetic",
    }
)


def _by_word(table: Mapping[Kind, str]) -> dict[str, Kind]:
    return {word: kind for kind, listed in table.items() for word in listed.split()}


_VERB, _NOUN = _by_word(_VERBS), _by_word(_NOUNS)


def kind_of(name: str, definition: Mapping[str, Any] | None = None) -> Kind:
    """Return what a tool does, by its own name (a client's prefix comes off) and the hints of its definition, if that is known."""
    spelled = kind_of_name(name)
    if words(without_prefix(name)) == ("add",) and takes_only_numbers(definition):
        spelled = Kind.UNKNOWN
    hints = (definition or {}).get("annotations")
    return _hinted(spelled, hints) if isinstance(hints, Mapping) else spelled


def kind_of_name(name: str) -> Kind:
    """Return what a tool's name says: its first verb and those joined to it, else a noun that stands for one."""
    parts = words(without_prefix(name))
    found = Kind.UNKNOWN
    for index in range(len(parts)):
        if not found or parts[index - 1] in _JOINTS:
            found |= _verb(parts, index)
    if found:
        return found
    return next((_NOUN[word] for word in parts if word in _NOUN), Kind.UNKNOWN)


def _verb(parts: tuple[str, ...], index: int) -> Kind:
    """Return what a word of a name says is done, by what stands beside it; unknown where it is no verb there."""
    word, others = parts[index], frozenset(parts)
    kind = _VERB.get(word, Kind.UNKNOWN)
    if word == "format":
        return (
            Kind.DESTRUCTIVE
            if _DISKS & others
            else Kind.WRITE
            if _FILES & others or len(parts) == 1
            else kind
        )
    if word == "log":
        more = parts[1] if index == 0 and len(parts) > 1 else ""
        read = more in _LOGGED or bool(_VERB.get(more, kind) & Kind.READ)
        return Kind.WRITE if more.isalpha() and not read else kind
    if word == "add" and len(parts) > 1 and others <= _SUMS:
        return Kind.UNKNOWN
    if word in _RECORDS and parts[-1] in _TOLD:
        return Kind.READ
    if kind == Kind.WRITE | Kind.DESTRUCTIVE and _ASKED & others:
        return Kind.READ | Kind.WRITE
    return kind


def _hinted(spelled: Kind, hints: Mapping[str, Any]) -> Kind:
    """Return a kind in the light of hints. Only hints that are given count: their defaults are guesses."""
    reads, destroys, reaches_out = (
        hints.get(name) for name in ("readOnlyHint", "destructiveHint", "openWorldHint")
    )
    if reads is True:
        return (spelled & ~Kind.WRITE) or Kind.READ
    if destroys is True:
        spelled |= Kind.DESTRUCTIVE
    if reads is False:
        if reaches_out is True:
            spelled |= Kind.SEND
        if not spelled & SINK:
            spelled |= Kind.WRITE
    return spelled


def shown(kind: Kind) -> str:
    """Return a kind in words."""
    return " and ".join(str(k.name).lower() for k in Kind if k & kind) or "unknown"
