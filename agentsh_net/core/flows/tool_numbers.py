"""Whether a tool takes numbers and nothing else: what another server read, a text or a file, does not fit into such a call.

Its schema is the server's own word, as its tool's name is. What follows from it is core.flows.tool_kind's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

MAX_PARAMETERS: Final = 32  # more than any arithmetic has; what is longer is not looked through
_NUMBERS: Final = frozenset({"number", "integer"})
_SMALL: Final = _NUMBERS | {"boolean", "null"}  # what may stand beside a number and says as little
# What makes a schema say more than its properties do (JSON Schema 2020-12, 10 and 11).
_MORE: Final = frozenset(
    {"$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "patternProperties", "dependentSchemas"}
)


def takes_only_numbers(definition: Mapping[str, Any] | None) -> bool:
    """Say whether every argument that a tool declares is a number, a list of numbers or a switch, and one at least is a number."""
    schema = (definition or {}).get("inputSchema")
    if not isinstance(schema, Mapping) or _MORE & schema.keys():
        return False
    if schema.get("additionalProperties") not in (None, False):
        return False
    declared = schema.get("properties")
    if not isinstance(declared, Mapping) or not 0 < len(declared) <= MAX_PARAMETERS:
        return False
    found = [_types(each) for each in declared.values()]
    return all(types and types <= _SMALL for types in found) and any(types & _NUMBERS for types in found)


def _types(schema: Any, depth: int = 0) -> frozenset[str]:
    """Return the types of a value, those of a list's items for a list; empty where that is not said plainly."""
    if not isinstance(schema, Mapping) or depth > 2 or _MORE & schema.keys() - {"anyOf"}:
        return frozenset()
    named, either = schema.get("type"), schema.get("anyOf")
    if isinstance(either, list) and named is None:
        parts = [_types(each, depth + 1) for each in either]
        return frozenset[str]().union(*parts) if all(parts) else frozenset()
    if named == "array":
        return _types(schema.get("items"), depth + 1)
    listed = named if isinstance(named, list) else [named]
    texts = [each for each in listed if isinstance(each, str)]
    return frozenset(texts) if len(texts) == len(listed) else frozenset()
