"""Arguments of a call that a client repeats as header fields (2026-07-28, Streamable HTTP, "custom headers from tool parameters").

A tool's schema names them (`x-mcp-header`). Who routes by such a field must not be told another story than who reads the body.
What the other header fields repeat is `gateway_http`'s business.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from agentsh_net.core.mcp.http_rules import TOKEN

ANNOTATION: Final = "x-mcp-header"
PREFIX: Final = "mcp-param-"
MAX_DEPTH: Final = 16  # of objects in objects: no tool of any known server has a third of it
MAX_ANNOTATED: Final = 64  # a request's head has no room for more
MIRRORED: Final = frozenset(("string", "integer", "boolean"))

_BASE64: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_WHOLE: Final = re.compile(r"(-?[0-9]{1,40})(?:\.0{1,40})?")

Path = tuple[str, ...]
Mirrored = tuple[tuple[Path, str, str], ...]  # path of the argument, name that its field ends in, type


def disagreement(
    mirrored: Mirrored,
    arguments: Any,
    fields: Mapping[str, str],
    repeated: Collection[str],
    *,
    complete: bool = True,
) -> str:
    """Say where the fields of a call contradict its arguments; empty where they do not. `complete`: none may be missing."""
    for path, token, kind in mirrored:
        name, argument = PREFIX + token.lower(), ".".join(path)
        if name in repeated:
            return f"the header {name} stands twice"
        wanted, given = _text(_at(arguments, path)), fields.get(name)
        if wanted is None and given is not None:
            return f"the header {name} repeats an argument {argument!r} that is not there"
        if complete and wanted is not None and given is None:
            return f"the header {name} is missing: the argument {argument!r} is there"
        if wanted is not None and given is not None and not _same(kind, wanted, given):
            return f"the header {name} is not the argument {argument!r}"
    return ""


def decoded(value: str) -> str | None:
    """Return what a field says that may be written in base64, as text outside ASCII is; None for what is no such text."""
    match = _BASE64.fullmatch(value)
    if match is None:
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None


def repeats(fields: Iterable[str]) -> bool:
    """Say whether a request has such a field at all."""
    return any(name.startswith(PREFIX) for name in fields)


def annotated(schema: Any) -> Mirrored:
    """Return the arguments that a schema wants repeated; none of them where one field would stand for two."""
    found = tuple(_walk(schema, ()))
    names = {token.lower() for _, token, _ in found}
    return found if len(names) == len(found) <= MAX_ANNOTATED else ()


def _walk(schema: Any, path: Path) -> Iterator[tuple[Path, str, str]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping) or len(path) >= MAX_DEPTH:
        return
    for name, inner in properties.items():
        if not isinstance(inner, Mapping):
            continue
        token, kind = inner.get(ANNOTATION), inner.get("type")
        if isinstance(token, str) and TOKEN.fullmatch(token) and isinstance(kind, str) and kind in MIRRORED:
            yield (*path, name), token, kind
        yield from _walk(inner, (*path, name))


def _at(arguments: Any, path: Path) -> Any:
    for name in path:
        arguments = arguments.get(name) if isinstance(arguments, Mapping) else None
    return arguments


def _text(value: Any) -> str | None:
    """Return an argument as a field says it; None for one that no field repeats."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return value
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
    return None


def _same(kind: str, wanted: str, given: str) -> bool:
    said = decoded(given)
    if kind == "integer" and said is not None and (whole := _WHOLE.fullmatch(said)) is not None:
        return whole[1] == wanted
    return said == wanted
