"""The policy file becomes a Config: read strictly, variables and secret files expanded, every problem with its line.

What is valid is `core.configuration.config`'s business; when to read again is `watch`'s.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentsh_net.config import strict_yaml
from agentsh_net.config.watch import Stamp, stamp
from agentsh_net.core.configuration.config import digest, parse
from agentsh_net.core.configuration.oversights import oversights
from agentsh_net.core.configuration.schema import UNKNOWN_KEY, hidden, quoted
from agentsh_net.core.configuration.settings import Config
from agentsh_net.core.errors import MORE_FILES, NO_FILES, ConfigError, KernelError, Problem
from agentsh_net.mcp_clients import declarations

# A Kubernetes ConfigMap has at most 1 MiB; reading that much takes about a second.
MAX_FILE = 1 << 20
# A secret is a token or a key pair; a certificate chain is the largest thing people keep in one.
MAX_SECRET = 64 << 10

FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY  # a pipe must not hang the reader

# The host's fault, and no file's.
EXHAUSTED = NO_FILES | {errno.ENOMEM}

REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^{}]*)\}|\$\{")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
FORMS = "${NAME}, ${file:/absolute/path}, or $${ for a literal ${"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A configuration and what it was made of. `mapping` holds secrets; `path` is None for the built-in default.

    `read` has the version of every file that went in (`watch`); `notes` say what could not be used, or is
    probably not meant; `referred` has the YAML
    paths of values that came from `${...}`, wholly or in part.
    """

    config: Config
    mapping: Mapping[str, Any] = field(repr=False)
    digest: str
    path: Path | None
    read: Mapping[Path, Stamp] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    referred: frozenset[str] = frozenset()


def load(path: Path, environ: Mapping[str, str], *, pipe: bool = False) -> Loaded:
    """Read a policy file. Raises ConfigError with every problem: of the file, of what it refers to, of its content.

    KernelError where the host cannot open it. With `pipe` it may be one, whose writer is waited for.
    """
    text, version = read_text(path, MAX_FILE, pipe=pipe)
    expansion = _Expansion(environ)
    document = strict_yaml.read(text, expansion.expand)
    # An editor that truncates before it writes: never a policy that allows all.
    if document.value is None and not document.problems:
        raise ConfigError([Problem(str(path), "an empty file", "a mapping that begins with `version: 1`")])
    problems = [*document.problems, *expansion.problems]
    broken = {problem.path for problem in problems}
    config = Config()
    try:
        config = parse(document.value)
    except ConfigError as error:
        problems += [expansion.hide(problem) for problem in error.problems if problem.path not in broken]
    if problems:
        lines = document.lines
        placed = [replace(p, line=p.line or _line_of(p.path, lines)) for p in problems]
        raise ConfigError(sorted(placed, key=lambda p: p.line))
    read = {path: version, **expansion.read}
    notes = (*oversights(config, document.value), *_exposed(path))
    return Loaded(config, document.value, digest(document.value), path, read, notes, expansion.referred)


def config_home(environ: Mapping[str, str], home: Path) -> Path:
    """Return where the programs of a user keep their settings; sudo may hand on the directories of somebody else."""
    named = Path(environ.get("XDG_CONFIG_HOME", ""))
    return named if named.is_relative_to(home) else home / ".config"


def default(
    environ: Mapping[str, str], home: Path, *, cwd: Path | None = None, uid: int | None = None
) -> Loaded:
    """Return what is in force without a file: audit mode over the servers that the MCP clients of `home` declare.

    Only files of `uid` (default: the owner of `home`), the caller or root are read; `notes` say what was not.
    """
    found = declarations.find(home, cwd=cwd or Path.cwd(), config_home=config_home(environ, home), uid=uid)
    servers = [server.declaration for server in found.servers]
    mapping = {"version": 1, "sandbox": {"mcp": {"enforce_policy": False, "servers": servers}}}
    config = parse(mapping)
    declared = zip(config.sandbox.mcp.servers, found.servers, strict=True)
    config = sourced(config, {server.id: str(place.source) for server, place in declared})
    return Loaded(config, mapping, digest(mapping), None, {}, tuple(map(str, found.unread)))


def sourced(config: Config, sources: Mapping[str, str]) -> Config:
    """Return the configuration with the file that each server's declaration came from (server id -> file)."""
    servers = tuple(replace(s, source=sources.get(s.id, "")) for s in config.sandbox.mcp.servers)
    return replace(config, sandbox=replace(config.sandbox, mcp=replace(config.sandbox.mcp, servers=servers)))


def read_text(path: Path, limit: int, *, pipe: bool = False) -> tuple[str, Stamp]:
    """Return the text of a regular file and the version that was read. Raises ConfigError, KernelError where the host is out of files."""
    flags = FLAGS & ~os.O_NONBLOCK if pipe else FLAGS
    try:
        with open(path, "rb", opener=lambda name, _: os.open(name, flags)) as file:
            status = os.fstat(file.fileno())
            if not (stat.S_ISREG(status.st_mode) or (pipe and stat.S_ISFIFO(status.st_mode))):
                raise ConfigError([Problem(str(path), "no regular file", "a file")])
            data = file.read(limit + 1)
    except OSError as error:
        if error.errno in EXHAUSTED:
            raise KernelError(f"{path} cannot be opened: {error.strerror}", remedy=MORE_FILES) from error
        reason = (error.strerror or "it cannot be read").lower().replace("is a directory", "a directory")
        raise ConfigError([Problem(str(path), reason, "a file that can be read")]) from error
    if len(data) > limit:
        raise ConfigError([Problem(str(path), "a larger file", f"at most {limit >> 10} KiB")])
    try:
        return data.decode("utf-8-sig"), stamp(status)
    except UnicodeDecodeError as error:
        raise ConfigError([Problem(str(path), f"no UTF-8 at byte {error.start}", "text in UTF-8")]) from error


def _exposed(path: Path) -> Iterator[str]:
    """Yield what lets whom the policy confines change it."""
    with contextlib.suppress(OSError):  # it is gone again: that is told when it is read next
        if path.stat().st_mode & stat.S_IWOTH:
            yield f"{path} may be written by every user: chmod o-w {path}"


class _Expansion:
    """Expands references in text, and remembers where, so that no problem shows what came from them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.read: dict[Path, Stamp] = {}
        self.problems: list[Problem] = []
        self._environ = environ
        self._sources: dict[str, list[str]] = {}  # YAML path -> references
        self._lengths: dict[str, int] = {}

    @property
    def referred(self) -> frozenset[str]:
        """Return the YAML paths of values that came from references."""
        return frozenset(self._sources)

    def expand(self, text: str, path: str) -> str:
        """Return text with its references replaced, once: what comes in is not expanded again."""
        if "$" not in text:
            return text
        try:
            expanded = REFERENCE.sub(lambda match: self._one(match, path), text)
        except ConfigError as error:
            self.problems += error.problems
            return text
        self._lengths[path] = len(expanded)
        return expanded

    def hide(self, problem: Problem) -> Problem:
        """Return a problem without the value, where the value came from a reference."""
        sources = self._sources.get(problem.path)
        if not sources or problem.found.startswith(UNKNOWN_KEY):
            return problem
        length = self._lengths.get(problem.path, 0)
        return replace(problem, found=f"{hidden(length)} (from {', '.join(sources)})")

    def _one(self, match: re.Match[str], path: str) -> str:
        name = match["name"]
        if match[0] == "$${":
            return "${"
        if name is not None and name.startswith("file:/"):
            self._sources.setdefault(path, []).append(f"${{{name}}}")
            return self._file(Path(name.removeprefix("file:")), path)
        if name is None or not VARIABLE.fullmatch(name):
            found = f"the reference {quoted(match[0])}" if name is not None else "a `${` without its `}`"
            raise ConfigError([Problem(path, found, FORMS)])
        self._sources.setdefault(path, []).append(f"${{{name}}}")
        if name not in self._environ:
            raise ConfigError(
                [Problem(path, f"the variable {name}, which is not set", "it in the environment")]
            )
        return self._environ[name]

    def _file(self, file: Path, path: str) -> str:
        try:
            text, self.read[file] = read_text(file, MAX_SECRET)
        except ConfigError as error:
            raise ConfigError(
                [replace(p, path=path, found=f"{p.found}: {p.path}") for p in error.problems]
            ) from error
        return text.removesuffix("\n").removesuffix("\r")


def _line_of(path: str, lines: Mapping[str, int]) -> int:
    """Return the line of a path, or of what it would stand in."""
    while path and path not in lines:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return lines.get(path, 0) if path else 0
