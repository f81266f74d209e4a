"""The arguments that a call was given, as the server would read them, or why nobody can tell.

What they must be like is `argument_rules`' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values import strict_json

# What a client's own tool may call the arguments of the one that it calls.
_INNER_KEYS: Final = frozenset(
    {"arguments", "args", "input", "toolarguments", "toolinput", "params", "parameters"}
)


@dataclass(frozen=True, slots=True)
class Given:
    """The arguments of a call as the server would read them; `doubt` says why nobody can tell."""

    value: Mapping[str, Any]
    doubt: str = ""


def given_by(call: ToolCall, *, wrapped: bool = False) -> Given:
    """Return a call's arguments; `wrapped`: they stand within those of a client's own tool."""
    if call.doubt or call.hypothetical:
        return Given({}, call.doubt or "nobody knows what another reading's arguments would be")
    value = call.input
    if wrapped:
        inner = [item for key, item in value.items() if key.replace("_", "").lower() in _INNER_KEYS]
        if len(inner) > 1:
            return Given({}, "two arguments in one wrapper")
        value = parsed(inner[0]) if inner else None
    if value is None or value == "":
        return Given({})
    return Given(value) if isinstance(value, Mapping) else Given({}, "they are no JSON object")


def parsed(value: Any) -> Any:
    """Return arguments that came as text as what it says; as the text where that is not certain."""
    if not isinstance(value, str):
        return value
    try:
        reading = strict_json.read(value.encode("utf-8", "surrogatepass"))
    except ProtocolError:
        return value
    return value if reading.duplicates else reading.value
