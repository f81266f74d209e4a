"""Where calls stand in a chat completion or in one chunk of a streamed one: a parsed value in, fragments with their paths out.

Lenient as the most generous client: keys in any case (Go), `message` for `delta`, bare or unknown call types, odd indices.
What the fragments add up to is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from agentsh_net.core.values.members import clash_of
from agentsh_net.core.values.strict_json import Path, dump

# Keys whose duplicates make two parsers see two different calls (or one see none).
CALL_KEYS: Final = frozenset(
    {
        "arguments", "choices", "custom", "delta", "function", "function_call", "id", "index", "input", "message",
        "name", "namespace", "tool_calls", "type",
    }
)  # fmt: skip
# Those of them that may hide a whole call from one parser.
_CARRIERS: Final = frozenset({"choices", "delta", "function_call", "message", "tool_calls"})

_ARGUMENTS: Final = ("arguments", "input")

Slot = tuple[str, str, int | None]  # delta or message, tool_calls or function_call, index


@dataclass(frozen=True, slots=True)
class Fragment:
    """A piece of a call: one entry of `tool_calls`, or a `function_call`."""

    choice: int
    slot: Slot
    carrier: Path  # of the delta or message
    path: Path  # of the call's object, which is removed with the call
    siblings: int  # entries of the list it stands in; 0: it stands in none
    # The paths of its index and id, whether they are there or not; a function_call has none.
    keys: tuple[Path, Path] | None
    odd: bool  # the index is no plain number
    strayed: bool  # nor is its choice's, or there is none: clients may take that for another choice
    id: str
    names: tuple[tuple[Path, str], ...]
    texts: tuple[str, ...]  # argument text, in order
    value: Any  # arguments that came as a JSON value
    namespace: str
    custom: bool
    argued: bool  # arguments stand in it twice, and differ
    misnamed: bool  # JavaScript joins what is no string to one that is
    plain: bool  # what it says stands where every client looks for it, in `function`

    @property
    def flaw(self) -> str:
        """Say why clients read different calls in this piece alone; empty where they do not."""
        if self.misnamed:
            return "the tool's name is not a string"
        if len({name for _, name in self.names}) > 1:
            return "a call with two names"
        if self.odd and self.slot[2] is None:
            return "an index that is no number"  # `[0]` is 0 to who makes it a key in JavaScript
        return "a call with two different arguments" if self.argued else ""

    @property
    def empty(self) -> bool:
        """Say whether it adds nothing to its call."""
        return not self.names and not any(self.texts) and self.value is None


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of a chunk: its number, and why it ended ("" while it has not)."""

    number: int
    finish_path: Path
    finish: str


@dataclass(slots=True)
class Chunk:
    """What a chunk or completion says about calls. `clashes`: keys that are there twice, spelled alike or by case."""

    choices: list[Choice] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)
    clashes: set[str] = field(default_factory=set)
    error: bool = False

    @property
    def hostile(self) -> str:
        """Return why two parsers would see two different calls here, or ""."""
        dangerous = self.clashes & (CALL_KEYS if self.fragments else _CARRIERS)
        return clash_of(dangerous)


def scan(value: Any, duplicates: frozenset[str] = frozenset()) -> Chunk:
    """Return what a parsed chunk, completion or list of completions says; `duplicates` are its reader's."""
    chunk = Chunk(clashes={key.casefold() for key in duplicates})
    if isinstance(value, dict):
        _completion(value, (), chunk)
        listed = value.get("data")
        for number, item in enumerate(listed if isinstance(listed, list) else ()):
            if isinstance(item, dict):
                _completion(item, ("data", number), chunk)
                _message(item, ("data", number), chunk)
    if duplicates:
        # A key that stands twice may be one of the arguments': as text they are what nobody can read for certain.
        chunk.fragments = [
            replace(fragment, value=dump(fragment.value)) if isinstance(fragment.value, dict) else fragment
            for fragment in chunk.fragments
        ]
    return chunk


def fold(value: Mapping[str, Any], clashes: set[str]) -> dict[str, str]:
    """Return the actual key for each casefolded one (the last wins, as in parsers), noting those that stand twice."""
    keys = {key.casefold(): key for key in value}
    if len(keys) != len(value):
        seen: set[str] = set()
        for key in map(str.casefold, value):
            (clashes if key in seen else seen).add(key)
    return keys


def number_of(value: Any) -> tuple[int | None, bool]:
    """Return the index that the most generous parser reads in `value` (None: none), and whether it is no plain one."""
    match value:
        case None:
            return None, False
        case bool():
            return int(value), True
        case int():
            return value, value < 0
        case float() if value.is_integer():
            return int(value), True
        case str() if value.strip().isdecimal() and len(value) < 20:
            return int(value), True
        case _:
            return None, True


def _completion(value: dict[str, Any], at: Path, chunk: Chunk) -> None:
    keys = fold(value, chunk.clashes)
    chunk.error = chunk.error or bool(value.get(keys.get("error", "error")))
    key = keys.get("choices", "choices")
    choices = value.get(key)
    for position, choice in enumerate(choices if isinstance(choices, list) else ()):
        if isinstance(choice, dict):
            _choice(choice, (*at, key, position), position if not at else len(chunk.choices), chunk)


def _message(value: dict[str, Any], at: Path, chunk: Chunk) -> None:
    """Take a stored message, which stands without a choice around it."""
    number = len(chunk.choices)
    found = list(_fragments(value, at, (number, "message", False), chunk.clashes))
    if found:
        chunk.fragments += found
        chunk.choices.append(Choice(number, (*at, "finish_reason"), ""))


def _choice(value: dict[str, Any], at: Path, position: int, chunk: Chunk) -> None:
    keys = fold(value, chunk.clashes)
    number, odd = number_of(value.get(keys.get("index", "index")))
    strayed = odd or number is None
    # Choices of listed completions are told apart by position: each has its own choice 0.
    number = position if number is None or (at and at[0] == "data") else number
    finish_key = keys.get("finish_reason", "finish_reason")
    finish = value.get(finish_key)
    for kind in ("delta", "message"):
        carrier = value.get(keys.get(kind, kind))
        if isinstance(carrier, dict):
            chunk.fragments += _fragments(carrier, (*at, keys[kind]), (number, kind, strayed), chunk.clashes)
    ended = "" if not finish else finish.casefold() if isinstance(finish, str) else dump(finish)
    chunk.choices.append(Choice(number, (*at, finish_key), ended))


def _fragments(
    carrier: dict[str, Any], at: Path, whose: tuple[int, str, bool], clashes: set[str]
) -> Iterator[Fragment]:
    keys = fold(carrier, clashes)
    for kind in ("tool_calls", "function_call"):
        if kind not in keys:
            continue
        path = (*at, keys[kind])
        calls = carrier[keys[kind]]
        if isinstance(calls, dict):
            yield _fragment(calls, path, 0, (kind, *whose), clashes)
        elif isinstance(calls, list):
            for position, entry in enumerate(calls):
                if isinstance(entry, dict):
                    yield _fragment(entry, (*path, position), len(calls), (kind, *whose), clashes)


def _fragment(
    entry: dict[str, Any], path: Path, siblings: int, whose: tuple[str, int, str, bool], clashes: set[str]
) -> Fragment:
    kind, choice, carrier, strayed = whose
    keys = fold(entry, clashes)
    index_key = keys.get("index", "index")
    index, odd = number_of(entry.get(index_key))
    id_key = keys.get("id", "id")
    identity = entry.get(id_key)
    custom = entry.get(keys.get("custom", "custom"))  # some gateways write it empty beside `function`
    said = _Said()
    for at, payload in _payloads(entry, keys, path):
        said.add(payload, keys if payload is entry else fold(payload, clashes), at)
    return Fragment(
        choice=choice,
        slot=(carrier, kind, index if kind == "tool_calls" else 0),
        carrier=path[: -2 if siblings else -1],
        path=path,
        siblings=siblings,
        keys=((*path, index_key), (*path, id_key)) if kind == "tool_calls" else None,
        odd=odd and kind == "tool_calls",
        strayed=strayed,
        id=identity if isinstance(identity, str) else "" if identity is None else dump(identity),
        names=tuple(said.names),
        texts=tuple(said.texts),
        value=said.value,
        namespace=said.namespace,
        custom=any(custom.values()) if isinstance(custom, dict) else bool(custom),
        argued=any(argument != said.given[0] for argument in said.given),
        misnamed=said.misnamed,
        plain=bool(siblings) and said.places <= {(*path, "function", key) for key in ("name", "arguments")},
    )


class _Said:
    """What the objects of one entry say of its call together, and where they name it and give it arguments."""

    __slots__ = ("given", "misnamed", "names", "namespace", "places", "texts", "value")

    def __init__(self) -> None:
        self.names: list[tuple[Path, str]] = []
        self.texts: list[str] = []
        self.value: Any = None
        self.given: list[Any] = []  # the arguments, text or not
        self.places: set[Path] = set()
        self.misnamed = False
        self.namespace = ""

    def add(self, payload: dict[str, Any], keys: Mapping[str, str], at: Path) -> None:
        """Take an object that stands at a place; `keys` are its own by their folded ones."""
        name = payload.get(keys.get("name", "name"))
        if name:
            self.misnamed = self.misnamed or not isinstance(name, str)
            place = (*at, keys["name"])
            self.names.append((place, name if isinstance(name, str) else dump(name)))
            self.places.add(place)
        for key in _ARGUMENTS:
            argument = payload.get(keys.get(key, key))
            if argument not in (None, ""):
                self.given.append(argument)
                self.places.add((*at, keys[key]))
            if isinstance(argument, str):
                self.texts.append(argument)
            elif argument is not None:
                self.value = argument
        spaced = payload.get(keys.get("namespace", "namespace"))
        self.namespace = spaced if isinstance(spaced, str) and spaced else self.namespace


def _payloads(
    entry: dict[str, Any], keys: Mapping[str, str], path: Path
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the objects that may name the tool: the known places, else any object within the entry that has a name."""
    yield path, entry
    known = False
    for kind in ("function", "custom"):
        payload = entry.get(keys.get(kind, kind))
        if isinstance(payload, dict):
            known = True
            yield (*path, keys[kind]), payload
    if known:
        return
    for key, payload in entry.items():
        if key.casefold() in _ARGUMENTS:
            continue  # a tool may well take a name
        if isinstance(payload, dict) and any(inner.casefold() == "name" for inner in payload):
            yield (*path, key), payload
