"""The quick way through YAML that says plain things only: libyaml's events become data at once, without nodes in between.

Whatever is not plain (anchors, tags, odd or repeated keys, anything out of bounds or not YAML at all) is `Elsewhere`: then
strict_yaml reads the text its own way, which tells every problem. Policies of 10,000 servers are plain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml
from yaml._yaml import CParser  # its public home, yaml.cyaml, does not export it to type checkers
from yaml.events import MappingStartEvent, ScalarEvent, SequenceStartEvent

from agentsh_net.core.configuration.schema import PLAIN_KEY, key_path

# What a plain scalar that begins with a character may be besides text: a test of it, and what it then is.
Kind = tuple[Callable[[str], Any], Callable[[str], Any]]
Kinds = Mapping[str, Sequence[Kind]]


class Elsewhere(Exception):  # noqa: N818  it is control flow between two readers, and never leaves them
    """The text is to be read the long way."""


class Plain:
    """One text, read once. `kinds` by first character; text is a scalar of none of them."""

    def __init__(self, text: str, kinds: Kinds, *, depth: int, values: int) -> None:
        self._next: Callable[[], Any] = CParser(text).get_event
        self._kinds = kinds
        self._most = depth
        self._left = values
        self._plain: set[str] = set()  # keys that stand in a path as they are
        self.lines: dict[str, int] = {}
        # Where text stands that is a value: its container, its place there, its path.
        self.texts: list[tuple[Any, Any, str]] = []

    def read(self) -> Any:
        """Return the one document's value in a list, with text as it stands. Raises Elsewhere."""
        root: list[Any] = [None]
        try:
            self._next()  # of the stream
            if type(self._next()) is not yaml.DocumentStartEvent:
                raise Elsewhere
            event = self._next()
            self.lines[""] = event.start_mark.line + 1
            root[0] = self._value(event, root, 0, "", 1)
            self._next()  # the document's end
            if type(self._next()) is not yaml.StreamEndEvent:
                raise Elsewhere
        except yaml.YAMLError as error:
            raise Elsewhere from error
        return root

    def _value(self, event: Any, holder: Any, place: Any, path: str, depth: int) -> Any:
        self._left -= 1
        kind = type(event)
        if depth > self._most or self._left < 0:
            raise Elsewhere
        if kind is ScalarEvent:
            value = self._scalar(event)
            if type(value) is str:
                self.texts.append((holder, place, path))
            return value
        if kind is MappingStartEvent and event.anchor is None and event.tag is None:
            return self._mapping(path, depth)
        if kind is SequenceStartEvent and event.anchor is None and event.tag is None:
            return self._sequence(path, depth)
        raise Elsewhere

    def _sequence(self, path: str, depth: int) -> list[Any]:
        result: list[Any] = []
        while type(event := self._next()) is not yaml.SequenceEndEvent:
            index = len(result)
            here = f"{path}[{index}]"
            self.lines[here] = event.start_mark.line + 1
            result.append(self._value(event, result, index, here, depth + 1))
        return result

    def _mapping(self, path: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while type(event := self._next()) is not yaml.MappingEndEvent:
            kind = type(event)
            if kind is not ScalarEvent:
                raise Elsewhere
            name = self._scalar(event)
            if type(name) is not str or name == "<<" or name in result:
                raise Elsewhere
            here = f"{path}.{name}" if path and name in self._plain else self._key_path(path, name)
            self.lines[here] = event.start_mark.line + 1
            result[name] = None
            result[name] = self._value(self._next(), result, name, here, depth + 1)
        return result

    def _key_path(self, path: str, name: str) -> str:
        if PLAIN_KEY.fullmatch(name):
            self._plain.add(name)
        return key_path(path, name)

    def _scalar(self, event: Any) -> Any:
        if event.anchor is not None or event.tag is not None:
            raise Elsewhere
        text: str = event.value
        if event.implicit[0]:
            for is_one, made in self._kinds.get(text[:1], ()):
                if is_one(text):
                    return made(text)
        return text
