"""How a mapping is read into dataclasses: readers that carry their YAML path and note every problem they meet.

A reader takes (At, value) and returns what it read, or notes a Problem and raises Refused; the readers of containers
go on with the next key. What the keys are and what they mean is `core.configuration.config`'s business, the leaves are `core.configuration.scalars`'.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, NamedTuple, NoReturn, TypeVar

from agentsh_net.core.errors import Problem

T = TypeVar("T")
K = TypeVar("K")

# A key that needs no quotes in a path; anything else is shown as ["..."], escaped.
PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]{1,128}")
# Enough to recognise one's own text on one line of a terminal.
SHOWN = 60
# How a problem begins that is of a key, whatever its value: a value that is told begins with a quote.
UNKNOWN_KEY = "the unknown key"


class Refused(Exception):  # noqa: N818  it is control flow between readers, and never leaves this package
    """The value cannot be used; its problem is noted already."""


# Not a dataclass: a policy of 10,000 servers steps 50,000 times, and one takes three times as long to make.
class At(NamedTuple):
    """Where a reader stands. `secret` hides values from problems; `names` holds what references may point to."""

    path: str
    problems: list[Problem]
    name: str = ""
    secret: bool = False
    names: Mapping[str, Mapping[str, str]] = MappingProxyType({})

    def key(self, name: str) -> At:
        """Step into the value of a key."""
        return At(key_path(self.path, name), self.problems, name, self.secret, self.names)

    def item(self, index: int) -> At:
        """Step into an item of a list."""
        return At(f"{self.path}[{index}]", self.problems, "", self.secret, self.names)

    def note(self, found: str, expected: str) -> None:
        """Keep a problem and go on."""
        self.problems.append(Problem(self.path, found, expected))

    def reject(self, found: str, expected: str) -> NoReturn:
        """Keep a problem, and give up on the value."""
        self.note(found, expected)
        raise Refused

    def refuse(self, value: Any, expected: str) -> NoReturn:
        """Keep a problem that shows this very value (unless it is secret), and give up on it."""
        self.reject(describe(value, secret=self.secret), expected)


Reader = Callable[[At, Any], T]


@dataclass(frozen=True, slots=True)
class Required:
    """A key that has no default."""

    read: Reader[Any]


def key_path(path: str, name: str) -> str:
    """Return the path of a key below `path`."""
    if (name.isidentifier() and name.isascii() and len(name) <= SHOWN) or PLAIN_KEY.fullmatch(name):
        return f"{path}.{name}" if path else name
    return f"{path}[{quoted(name)}]"


def quoted(text: str) -> str:
    """Return text as it may stand on a terminal: short, and escaped where it is not printable."""
    return repr(text if len(text) <= SHOWN else text[: SHOWN - 3] + "...")


def describe(value: Any, *, secret: bool = False) -> str:
    """Say what a value is, without the value where it is secret and without the contents of containers."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return "true or false" if secret else str(value).lower()
        case int() | float() if secret or abs(value) >= 1 << 63:
            return "a number" if secret else "a huge number"
        case int() | float():
            return f"the number {value}"
        case str():
            return hidden(len(value)) if secret else quoted(value)
        case Mapping():
            return f"a mapping of {len(value)} key{'s' * (len(value) != 1)}"
        case list() | tuple():
            return f"a list of {len(value)} item{'s' * (len(value) != 1)}"
        case _:
            return f"a value of type {type(value).__name__}"


def hidden(length: int) -> str:
    """Say of a text that is not to be shown how long it is."""
    return f"a string of {length} character{'s' * (length != 1)}"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the known name that was probably meant, or all of them where none is near."""
    names = sorted(known)
    near = names if len(names) == 1 else get_close_matches(name[:128], names, n=1, cutoff=0.6)
    if near:
        return f"`{near[0]}`"
    return "one of " + ", ".join(names) if names else "no key here"


def _or_none(at: At, value: Any, what: str) -> str:
    """Return what is expected; a key whose every line was commented out has nothing below it, and may go too."""
    return f"{what}, or no key `{at.name}`" if value is None and at.name else what


def mapping(at: At, value: Any) -> Mapping[str, Any]:
    """Read a mapping with text keys; other keys are noted and left out."""
    if not isinstance(value, Mapping):
        at.refuse(value, _or_none(at, value, "a mapping"))
    found = {k: v for k, v in value.items() if isinstance(k, str)}
    if len(found) < len(value):
        for key in value:
            if not isinstance(key, str):
                at.note(f"a key that is {describe(key)}", "keys that are text (quote it)")
    return found


def record(keys: Mapping[str, Reader[Any] | Required]) -> Reader[dict[str, Any]]:
    """Read a mapping with known keys into a dict of what was given and could be read."""
    required = [name for name, reader in keys.items() if isinstance(reader, Required)]
    readers = {name: key.read if isinstance(key, Required) else key for name, key in keys.items()}

    def read(at: At, value: Any) -> dict[str, Any]:
        given = mapping(at, value)
        values: dict[str, Any] = {}
        for name, item in given.items():
            reader = readers.get(name)
            if reader is None:
                at.key(name).note(f"{UNKNOWN_KEY} {quoted(name)}", nearest(name, keys))
                continue
            try:
                values[name] = reader(at.key(name), item)
            except Refused:
                continue  # noted already
        for name in required:
            if name not in given:
                at.key(name).note("nothing", "a value: this key has no default")
        if not all(name in values for name in required):
            raise Refused
        return values

    return read


def section(make: Callable[..., T], keys: Mapping[str, Reader[Any] | Required]) -> Reader[T]:
    """Read a mapping with known keys and call `make` with what was given (a key `in` has no other name here)."""
    read_record = record(keys)

    def read(at: At, value: Any) -> T:
        return make(**read_record(at, value))

    return read


def meant(make: Callable[..., T]) -> Callable[..., T]:
    """Return the maker of a section whose `enabled` is true unless it says otherwise: who writes it down means it."""

    def made(*, enabled: bool = True, **given: Any) -> T:
        return make(enabled=enabled, **given)

    return made


def checked(read: Reader[T], *checks: Callable[[At, T], T]) -> Reader[T]:
    """Let what was read pass through checks of several keys together; each returns it, perhaps completed."""

    def read_and_check(at: At, value: Any) -> T:
        result = read(at, value)
        for check in checks:
            result = check(at, result)
        return result

    return read_and_check


def items(read: Reader[T], *, same: Callable[[T], Any] | None = None) -> Reader[tuple[T, ...]]:
    """Read a list; with `same`, two items that have it in common are a problem."""

    def read_items(at: At, value: Any) -> tuple[T, ...]:
        if not isinstance(value, list | tuple):
            at.refuse(value, _or_none(at, value, "a list"))
        result: list[T] = []
        first: dict[Any, str] = {}
        for index, item in enumerate(value):
            here = at.item(index)
            try:
                read_item = read(here, item)
            except Refused:
                continue  # noted already
            if same is not None:
                other = first.setdefault(same(read_item), here.path)
                if other != here.path:
                    here.note(f"a second one of {other}", "each only once (case and width do not count)")
                    continue
            result.append(read_item)
        return tuple(result)

    return read_items


def table(read_key: Reader[K], read: Reader[T]) -> Reader[dict[K, T]]:
    """Read a mapping with free keys; two keys that read alike are a problem."""

    def read_table(at: At, value: Any) -> dict[K, T]:
        result: dict[K, T] = {}
        for name, item in mapping(at, value).items():
            here = at.key(name)
            keys: list[K] = []
            with suppress(Refused):
                keys.append(read_key(here, name))
            with suppress(Refused):
                read_item = read(here, item)  # under a bad key too: every problem is told at once
                for key in keys:
                    if key in result:
                        here.note(
                            f"{quoted(name)} a second time", "each only once (case and width do not count)"
                        )
                    else:
                        result[key] = read_item
        return result

    return read_table


def secret(read: Reader[T]) -> Reader[T]:
    """Keep the value out of every problem."""

    def read_secret(at: At, value: Any) -> T:
        return read(at._replace(secret=True), value)

    return read_secret
