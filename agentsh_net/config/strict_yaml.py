"""YAML text becomes plain data with the line of every value, strictly: one document, text keys, no key twice.

Scalars follow the core schema of YAML 1.2 (`off` is text, `010` is ten), so that a policy means what it shows.
What the keys mean is `core.configuration.config`'s business; what `expand` does to text is the caller's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import yaml
from yaml._yaml import CParser  # its public home, yaml.cyaml, does not export it to type checkers
from yaml.composer import Composer
from yaml.reader import ReaderError
from yaml.resolver import BaseResolver

from agentsh_net.config.plain_yaml import Elsewhere, Kinds, Plain
from agentsh_net.core.configuration.schema import key_path, quoted
from agentsh_net.core.errors import ConfigError, Problem
from agentsh_net.core.naming.folding import visible

# The schema is eight levels deep; the parser below us recurses per level.
MAX_DEPTH = 32
# Anchors save typing; more than this many uses is a bomb or a generator's output, which needs none.
MAX_ALIASES = 64
# Values after aliases are followed: far above any policy, far below what costs memory.
MAX_VALUES = 200_000

# int() of more digits costs quadratic time; no number of a policy has more than ten.
MAX_DIGITS = 20

TAG = "tag:yaml.org,2002:"
# YAML 1.2.2, section 10.3.2: the core schema, as (tag, pattern, characters it may begin with).
CORE_SCHEMA = (
    (TAG + "null", re.compile(r"(?:~|null|Null|NULL|)\Z"), ("~", "n", "N", "")),
    (TAG + "bool", re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), tuple("tTfF")),
    (TAG + "int", re.compile(r"(?:[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"), tuple("-+0123456789")),
    (
        TAG + "float",
        re.compile(
            r"(?:[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
            r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z"
        ),
        tuple("-+.0123456789"),
    ),
)

Expand = Callable[[str, str], str]


def unexpanded(text: str, _path: str) -> str:
    """Leave text as it is."""
    return text


@dataclass(frozen=True, slots=True)
class Document:
    """What a text says: plain data, the line of each path (from 1), and what was wrong but could be read past."""

    value: Any = field(repr=False)
    lines: dict[str, int] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


class _Bound(yaml.MarkedYAMLError):
    """The text is larger than any policy; raised like the parser's own errors, with its place."""

    def __init__(self, problem: str, mark: Any) -> None:
        super().__init__(None, None, problem, mark)


class _Composer(Composer, CParser, BaseResolver):
    """Text to nodes, with bounds: libyaml's events (ten times as fast as PyYAML's own), composed here, where depth is counted.

    PyYAML's constructors and its YAML 1.1 resolver are not in it.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012  the attribute is PyYAML's
        first: [(tag, pattern) for tag, pattern, firsts in CORE_SCHEMA if first in firsts]
        for first in {c for _, _, firsts in CORE_SCHEMA for c in firsts}
    }

    def __init__(self, text: str) -> None:
        CParser.__init__(self, text)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.depth = 0
        self.aliases = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        mark = event.start_mark if event is not None else None
        self.aliases += self.check_event(yaml.AliasEvent)
        if self.aliases > MAX_ALIASES:
            raise _Bound(f"more than {MAX_ALIASES} aliases", mark)
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise _Bound(f"more than {MAX_DEPTH} levels", mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def read(text: str, expand: Expand = unexpanded) -> Document:
    """Return what the text says, or raise ConfigError with the one problem that cannot be read past.

    `expand(text, path)` is called for each text that is a value, not for keys.
    """
    try:
        return _quickly(text, expand)
    except Elsewhere:
        return _at_length(text, expand)


def _quickly(text: str, expand: Expand) -> Document:
    """Return what a text says that is plain; a quarter of the time. Raises Elsewhere before anything is expanded."""
    plain = Plain(text, _KINDS, depth=MAX_DEPTH, values=MAX_VALUES)
    root = plain.read()
    for holder, place, path in plain.texts:
        holder[place] = expand(holder[place], path)
    return Document(root[0], plain.lines)


def _at_length(text: str, expand: Expand) -> Document:
    """Return what any text says, with its problems. Raises ConfigError."""
    try:
        node = _Composer(text).get_single_node()
        if node is None:
            return Document(None)
        walk = _Walk(expand)
        value = walk.value(node, "", 0)
    except ReaderError as error:
        line, column = _place(text, error.position)
        raise ConfigError(
            [_syntax(line, column, "a control character", "printable text in UTF-8")]
        ) from error
    except yaml.MarkedYAMLError as error:
        raise ConfigError([_told(text, error)]) from error
    return Document(value, walk.lines, tuple(walk.problems))


class _Walk:
    """Nodes to data: what can be read past becomes a problem, what is out of bounds ends it."""

    def __init__(self, expand: Expand) -> None:
        self.expand = expand
        self.lines: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.count = 0

    def value(self, node: yaml.Node, path: str, depth: int) -> Any:
        self.count += 1
        if depth > MAX_DEPTH or self.count > MAX_VALUES:
            raise _Bound("aliases that expand to more than any policy", node.start_mark)
        self.lines.setdefault(path, node.start_mark.line + 1)
        match node:
            case yaml.MappingNode() if node.tag == TAG + "map":
                return self.mapping(node, path, depth)
            case yaml.SequenceNode() if node.tag == TAG + "seq":
                return [self.value(item, f"{path}[{i}]", depth + 1) for i, item in enumerate(node.value)]
            case yaml.ScalarNode():
                return self.scalar(node, path)
        return self.problem(path, node, f"the tag {quoted(node.tag)}", "a value without a tag")

    def mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first: dict[str, int] = {}
        for key, item in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.tag != TAG + "str":
                self.problem(path, key, "a key that is no text", "keys that are text (quote it)")
                continue
            name = str(key.value)
            here = key_path(path, name)
            if name == "<<" and not key.style:
                self.problem(here, key, "a merge key", "the keys written out")
            elif name in first:
                self.problem(
                    here, key, f"the key a second time (first on line {first[name]})", "each key once"
                )
            else:
                first[name] = self.lines[here] = line
                result[name] = self.value(item, here, depth + 1)
        return result

    def scalar(self, node: yaml.ScalarNode, path: str) -> Any:
        text = str(node.value)
        match node.tag.removeprefix(TAG):
            case "str":
                return self.expand(text, path)
            case "null":
                return None
            case "bool" if text.lower() in ("true", "false"):
                return _boolean(text)
            case "int" if CORE_SCHEMA[2][1].match(text):
                return self.integer(node, text, path)
            case "float" if CORE_SCHEMA[3][1].match(text):
                return _float(text)
        return self.problem(path, node, f"the tag {quoted(node.tag)}", "a value without a tag")

    def integer(self, node: yaml.Node, text: str, path: str) -> int:
        if len(text) > MAX_DIGITS:
            self.problem(path, node, "a huge number", f"a number of at most {MAX_DIGITS} digits")
            return 0
        return _integer(text)

    def problem(self, path: str, node: yaml.Node, found: str, expected: str) -> None:
        self.problems.append(Problem(path, found, expected, node.start_mark.line + 1))


def _boolean(text: str) -> bool:
    return text.lower() == "true"


def _integer(text: str) -> int:
    """Return a number of the core schema; one that is huge is a problem, and told at length. Raises Elsewhere."""
    if len(text) > MAX_DIGITS:
        raise Elsewhere
    return int(text, {"0x": 16, "0o": 8}.get(text[:2], 10))


def _float(text: str) -> float:
    return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))


# The core schema by first characters, in its order, for the quick way.
_KINDS: Kinds = {
    first: [
        (pattern.match, made)
        for (_, pattern, firsts), made in zip(
            CORE_SCHEMA, (lambda _: None, _boolean, _integer, _float), strict=True
        )
        if first in firsts
    ]
    for first in {c for _, _, firsts in CORE_SCHEMA for c in firsts}
}


def _told(text: str, error: yaml.MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    if mark and text[mark.index : mark.index + 1] == "\t":
        return _syntax(line, column, "a tab", "spaces: YAML does not indent by tabs")
    if isinstance(error, _Bound):
        return _syntax(line, column, str(error.problem), "a policy written out")
    found = ", ".join(part for part in (error.context, error.problem) if part)
    reference = mark is not None and text[mark.index - 1 : mark.index + 1] == "${"
    expected = "YAML (inside braces a `${...}` is quoted)" if reference else _mended(error)
    return _syntax(line, column, f"text that is not YAML ({visible(found)})", expected)


def _mended(error: yaml.MarkedYAMLError) -> str:
    """Say what would make YAML of the text, where the parser's words tell; where it began is what people look for."""
    began = f"on line {error.context_mark.line + 1}" if error.context_mark else "before"
    match f"{error.context}: {error.problem}":
        case words if "another document" in words:
            return "one document: a policy has no second `---`"
        case words if "flow mapping" in words:
            return f"a comma, or the `}}` of the `{{` {began}"
        case words if "flow sequence" in words:
            return f"a comma, or the `]` of the `[` {began}"
        case words if "block mapping" in words:
            return f"a `key: value` indented as the mapping that begins {began}"
        case words if "block collection" in words:
            return f"a `- ` indented as the list that begins {began}"
        case words if "alias" in words or "scanning a tag" in words:
            return "quotes around text that begins with `*` or `!`"
        case words if "unknown escape" in words:
            return "single quotes around text with a `\\`, or each `\\` doubled"
        case words if "escape code" in words:
            return "the letter itself, or `\\U` and its 8 hex digits"
        case words if "quoted scalar" in words:
            return f"the quote that ends the text {began}"
        case words if "flow node" in words:
            return "a value here, or the `]` or `}` of what begins before"
        case words if "mapping values are not allowed" in words:
            return "quotes around text with `: ` in it, and each key on a line of its own"
        case words if "cannot start any token" in words:
            return "quotes around text that begins with this character"
        case _:
            return "YAML"


def _syntax(line: int, column: int, found: str, expected: str) -> Problem:
    return Problem(f"line {line}, column {column}", found, expected)


def _place(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - before.rfind("\n")
