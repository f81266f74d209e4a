"""A client's file with its servers put under the shim, or taken out again: the text is edited, never written anew.

Only words are added, before the server's own, so that taking them away restores every byte: comments, spacing and what the
user changed meanwhile. Which servers, and reading and writing files, is `installation`'s business.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import json_splice, strict_json
from agentsh_net.mcp_clients import shim_wrapping, user_file

Keys = tuple[str, ...]
Span = tuple[int, int]


class UneditableError(Exception):
    """Why a text cannot be edited; it stays as it was."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """Where the words of one server's command stand in a text. `args` is None where there are none."""

    command: Span
    args: Span | None
    words: tuple[Span, ...]  # of `args`, or of a `command` that is a list
    listed: bool = False  # `command` is a list: it holds all words


@dataclass(frozen=True, slots=True)
class _Syntax:
    """A file format: where entries stand, how a word and a new member of arguments are written, what a text means."""

    entry: Callable[[str, Keys], _Entry]
    quote: Callable[[str], str]
    member: Callable[[str], str]
    parse: Callable[[str], Any]


def install(text: str, kind: str, servers: Mapping[Keys, str], program: Sequence[str]) -> str:
    """Return `text` (of a `json` or `toml` file) with these entries (keys -> server id) run under the shim; those that do, do.

    Raises UneditableError.
    """
    syntax = _SYNTAXES[kind]
    before = syntax.parse(text)
    edited = text
    for keys, server_id in servers.items():
        if shim_wrapping.wrapped(_command(_at(before, keys))) is None:
            edited = _wrap(edited, syntax, keys, shim_wrapping.words(program, server_id))
    expected = {keys: _command(_at(before, keys)) for keys in servers}
    after = syntax.parse(edited)
    for keys, command in expected.items():
        inner = shim_wrapping.wrapped(_command(_at(after, keys)))
        own = shim_wrapping.wrapped(command)
        if inner is None or list(inner.command) != (list(own.command) if own else command):
            raise UneditableError(f"{'.'.join(keys)} is written in a way that cannot be edited safely")
    return edited


def uninstall(text: str, kind: str, places: Sequence[Keys]) -> str:
    """Return `text` with the entries at these keys run as they were before `install`. Raises UneditableError."""
    syntax = _SYNTAXES[kind]
    for keys in places:
        entry = _at(syntax.parse(text), keys)
        inner = shim_wrapping.wrapped(_command(entry)) if _is_made_of_words(entry) else None
        if inner is None:
            continue
        text = _unwrap(text, syntax, keys, inner.before)
        if _command(_at(syntax.parse(text), keys)) != list(inner.command):
            raise UneditableError(f"{'.'.join(keys)} is written in a way that cannot be edited safely")
    return text


def entry(text: str, kind: str, keys: Keys) -> Any:
    """Return what a text says at these keys, None where it says nothing. Raises UneditableError."""
    return _at(_SYNTAXES[kind].parse(text), keys)


def value_span(text: str, kind: str, keys: Keys, name: str) -> Span:
    """Return where the text of an entry's plain value stands, its quotes included. Raises UneditableError."""
    if kind == "json":
        return _span(_blank(text), (*keys, name))
    start, end = _table(text, keys)
    line = re.compile(rf"^[ \t]*{re.escape(name)}[ \t]*=[ \t]*(?P<value>{_STRING})", re.MULTILINE)
    found = line.search(text, start, end)
    if found is None:
        raise UneditableError(f"{'.'.join(keys)} has no {name} on a line of its own")
    return found.span("value")


def key_span(text: str, keys: Keys, name: str) -> Span:
    """Return where the key of an entry's member stands in JSON, its quotes included. Raises UneditableError."""
    plain = _blank(text)
    before = plain[: _span(plain, (*keys, name))[0]].rstrip().removesuffix(":").rstrip()
    if not before.endswith(f'"{name}"'):
        raise UneditableError(f"the key {name!r} is not written plainly")
    return len(before) - len(name) - 2, len(before)


def without_member(text: str, keys: Keys, name: str) -> str:
    """Return JSON without a member of an entry, and without the comma before it. Raises UneditableError."""
    plain = _blank(text)
    start, end = key_span(text, keys, name)[0], _span(plain, (*keys, name))[1]
    before = plain[:start].rstrip()
    if before.endswith(","):
        return _replace(text, (len(before) - 1, end), "")
    after = plain[end:].lstrip()
    gap = len(plain) - end - len(after)
    return _replace(text, (start, end + gap + after.startswith(",")), "")


def _wrap(text: str, syntax: _Syntax, keys: Keys, words: list[str]) -> str:
    entry = syntax.entry(text, keys)
    quoted = [syntax.quote(word) for word in words]
    if entry.listed:
        return _insert(text, entry.command, quoted, entry.words)
    command = text[slice(*entry.command)]
    moved = [*quoted[1:], command]
    if entry.args is not None:
        edited = _insert(text, entry.args, moved, entry.words)
    else:
        # Without a space: how `_unwrap` knows a member of ours from an empty one of the user's.
        edited = _replace(text, (entry.command[1],) * 2, syntax.member(",".join(moved)))
    if entry.args is not None and entry.args[0] < entry.command[0]:
        grown = len(edited) - len(text)
        return _replace(edited, (entry.command[0] + grown, entry.command[1] + grown), quoted[0])
    return _replace(edited, entry.command, quoted[0])


def _unwrap(text: str, syntax: _Syntax, keys: Keys, before: int) -> str:
    entry = syntax.entry(text, keys)
    if entry.listed:
        return _remove(text, entry.words, before)
    assert entry.args is not None  # noqa: S101 - `shim` is an argument
    own = text[slice(*entry.words[before - 1])]
    generated = syntax.member(",".join(text[slice(*word)] for word in entry.words))
    end = entry.command[1] + len(generated)
    if len(entry.words) == before and text[entry.command[1] : end] == generated:
        return _replace(_replace(text, (entry.command[1], end), ""), entry.command, own)
    edited = _remove(text, entry.words, before)
    shrunk = len(text) - len(edited) if entry.args[0] < entry.command[0] else 0
    return _replace(edited, (entry.command[0] - shrunk, entry.command[1] - shrunk), own)


def _insert(text: str, array: Span, quoted: list[str], words: tuple[Span, ...]) -> str:
    added = ", ".join(quoted) + (", " if words else "")
    at = words[0][0] if words else array[0] + 1
    return _replace(text, (at, at), added)


def _remove(text: str, words: tuple[Span, ...], count: int) -> str:
    """Remove the first words of an array as `_insert` put them there."""
    end = words[count][0] if count < len(words) else words[count - 1][1]
    return _replace(text, (words[0][0], end), "")


def _replace(text: str, span: Span, new: str) -> str:
    return text[: span[0]] + new + text[span[1] :]


def _at(value: Any, keys: Keys) -> Any:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def _command(entry: Any) -> list[str]:
    """Return the words of an entry's command. Raises UneditableError where they are none."""
    words = _words(entry)
    if not _is_made_of_words(entry):
        raise UneditableError("a command that is not made of words")
    return words


def _is_made_of_words(entry: Any) -> bool:
    words = _words(entry)
    return bool(words) and all(isinstance(word, str) for word in words)


def _words(entry: Any) -> list[Any]:
    command = entry.get("command") if isinstance(entry, Mapping) else None
    args = entry.get("args") or [] if isinstance(entry, Mapping) else []
    first = command if isinstance(command, list) else [command]
    return [*first, *args] if isinstance(args, list) else [None]


# JSON, with comments and trailing commas as editors keep it.


def _json_entry(text: str, keys: Keys) -> _Entry:
    plain = _blank(text)
    start, end = _span(plain, keys)
    own = plain[start:end]  # the file may be megabytes long, and each place is looked for by itself
    entry = _parse_json(own)

    def span(*path: str | int) -> Span:
        found = _span(own, path)
        return start + found[0], start + found[1]

    if not isinstance(entry, Mapping) or "command" not in entry:
        raise UneditableError("a command that is not made of words")
    command = span("command")
    if isinstance(entry["command"], list):
        words = tuple(span("command", i) for i in range(len(entry["command"])))
        return _Entry(command, None, words, listed=True)
    if not isinstance(entry.get("args"), list):
        if "args" in entry:
            raise UneditableError("arguments that are no list")
        return _Entry(command, None, ())
    words = tuple(span("args", i) for i in range(len(entry["args"])))
    return _Entry(command, span("args"), words)


def _blank(text: str) -> str:
    """Return JSON of the same length without comments and trailing commas."""
    without = user_file.COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)
    return user_file.TRAILING_COMMA.sub(lambda m: m[1] or " ", without)


def _span(text: str, path: strict_json.Path) -> Span:
    """Return where a value stands, by what an edit of it would replace: one door to the text for reading and editing."""
    try:
        marked = json_splice.splice(text.encode(), {path: json_splice.Raw("\0")}).decode()
    except ProtocolError as error:
        raise UneditableError(str(error)) from error
    if marked.count("\0") != 1:
        raise UneditableError(f"the key {path[-1]!r} stands there twice")
    start = marked.index("\0")
    return start, len(text) - (len(marked) - start - 1)


def _parse_json(text: str) -> Any:
    try:
        return user_file.parse_json(text)
    except ValueError as error:
        raise UneditableError(f"no JSON: {error}") from error


# TOML: tables of their own, with command and args as plain keys. What is written otherwise is left to its user.

_STRING = r'"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\''
_WORD = re.compile(rf"(?P<word>{_STRING})|#[^\n]*|[\s,]+")
_COMMAND = re.compile(rf"^[ \t]*command[ \t]*=[ \t]*(?P<value>{_STRING})", re.MULTILINE)
_ARGS = re.compile(r"^[ \t]*args[ \t]*=[ \t]*(?P<open>\[)", re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


def _toml_entry(text: str, keys: Keys) -> _Entry:
    start, end = _table(text, keys)
    command = _COMMAND.search(text, start, end)
    if command is None:
        raise UneditableError(f"{'.'.join(keys)} has no command on a line of its own")
    args = _ARGS.search(text, start, end)
    if args is None:
        return _Entry(command.span("value"), None, ())
    at, words = args.end("open"), []
    while at < end and text[at] != "]":
        match = _WORD.match(text, at, end)
        if match is None:
            raise UneditableError(f"{'.'.join(keys)} has arguments that are no plain strings")
        if match["word"]:
            words.append(match.span("word"))
        at = match.end()
    return _Entry(command.span("value"), (args.start("open"), at + 1), tuple(words))


def _table(text: str, keys: Keys) -> Span:
    """Return the lines of a table, after its head."""
    names = (rf"(?:{re.escape(k)}|\"{re.escape(k)}\"|'{re.escape(k)}')" for k in keys)
    head = re.compile(
        rf"^[ \t]*\[[ \t]*{r'[ ]*[.][ ]*'.join(names)}[ \t]*\][ \t]*(?:#[^\n]*)?\r?$", re.MULTILINE
    )
    found = list(head.finditer(text))
    if len(found) != 1:
        raise UneditableError(f"{'.'.join(keys)} is no table of its own")
    following = _TABLE.search(text, found[0].end())
    return found[0].end(), following.start() if following else len(text)


def _parse_toml(text: str) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UneditableError(f"no TOML: {error}") from error


def _quote(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


_SYNTAXES = {
    "json": _Syntax(_json_entry, _quote, lambda words: f',"args":[{words}]', _parse_json),
    "toml": _Syntax(_toml_entry, _quote, lambda words: f"\nargs=[{words}]", _parse_toml),
}
