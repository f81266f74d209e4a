"""Reads a file that belongs to a user, perhaps as root: what the user could not read never gets in by a link, the user's own does.

What the file says is the caller's business; problems name the place and never quote the content, which holds tokens.
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from pathlib import Path
from typing import Any

import orjson

# ~/.claude.json keeps history and grows to several MiB.
MAX_FILE = 16 << 20
FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY

# Strings are matched first, to be kept; possessive, so that an open quote or comment costs one pass.
COMMENT = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*"?)|//[^\n]*|/\*(?:.*?\*/|.*)', re.DOTALL)
TRAILING_COMMA = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*"?)|,(?=\s*[}\]])', re.DOTALL)
PLACE = re.compile(r"line \d+,? column \d+")


class UnusableError(Exception):
    """Why a file cannot be used."""


class Owner:
    """A user whose files are read: those it owns, and root's where they really stand. `uid` is home's owner if None."""

    def __init__(self, home: Path, uid: int | None = None) -> None:
        self._home = home
        self._uid = _owner_of(home) if uid is None else uid

    def content(self, path: Path) -> Any:
        """Return the data of a JSON or TOML file, or None where there is none. Raises UnusableError."""
        data = self._read(path)
        if data is None:
            return None
        kind = "TOML" if path.suffix == ".toml" else "JSON"
        try:
            text = data.decode("utf-8-sig")
            return tomllib.loads(text) if kind == "TOML" else parse_json(text)
        except (ValueError, RecursionError) as error:  # both parsers' errors are ValueErrors
            where = PLACE.search(str(error))
            raise UnusableError(f"no valid {kind}" + (f" ({where[0]})" if where else "")) from error

    def _read(self, path: Path) -> bytes | None:
        try:
            with open(path, "rb", opener=lambda name, _: os.open(name, FLAGS)) as file:
                self._check(path, file.fileno())
                data = file.read(MAX_FILE + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise UnusableError((error.strerror or "unreadable").lower()) from error
        if len(data) > MAX_FILE:
            raise UnusableError(f"larger than {MAX_FILE >> 20} MiB")
        return data

    def _check(self, path: Path, fd: int) -> None:
        status = os.fstat(fd)
        if not stat.S_ISREG(status.st_mode):
            raise UnusableError("no regular file")
        if status.st_uid not in (self._uid, os.geteuid(), 0):
            raise UnusableError(f"owned by uid {status.st_uid}, not by uid {self._uid}")
        # Links to the user's own files (of dotfiles) are as good as these. One to a file of root's may be there so that root reads
        # what the user could not: it counts only where it stands, or if the user is who reads.
        trusted = self._uid in (status.st_uid, os.geteuid())
        if not trusted and Path(f"/proc/self/fd/{fd}").readlink() != self._place(path):
            raise UnusableError(f"owned by uid {status.st_uid} and reached through a symbolic link")

    def _place(self, path: Path) -> Path:
        """Return where a path leads if nothing below the home is a link."""
        return (
            self._home.resolve() / path.relative_to(self._home) if path.is_relative_to(self._home) else path
        )


def parse_json(text: str) -> Any:
    """Read JSON, or JSON with comments and trailing commas as editors keep it; a blank text is an empty object.

    Raises ValueError.
    """
    if not text.strip():
        return {}
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return orjson.loads(TRAILING_COMMA.sub(r"\1", COMMENT.sub(_blank, text)))


def _blank(match: re.Match[str]) -> str:
    """Keep strings, and put white space for comments, so that lines and columns stay."""
    return match[1] or re.sub(r"[^\n]", " ", match[0])


def _owner_of(home: Path) -> int:
    try:
        return home.stat().st_uid
    except OSError:
        return os.geteuid()
