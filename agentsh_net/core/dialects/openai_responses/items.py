"""Output items of the Responses API: which are calls, what they say, and the message that stands where a refused one stood.

Streams and whole answers share it. What is decided about a call, and in which order events come, is decided elsewhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Final

from agentsh_net.core.dialects.argument_text import parsed
from agentsh_net.core.dialects.steering import Steered, function_call
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values.members import clash_of, text_of

NAME: Final = "openai_responses"

# Keys that decide what a parser takes for a call, and which; twice in one text, two parsers see two different things.
DECISIVE: Final = frozenset(
    {
        "type", "item", "response", "output", "output_index", "item_id", "id", "call_id", "name", "namespace", "server_label",
        "arguments", "input", "delta", "action", "actions", "operation", "code", "execution",
    }
)  # fmt: skip
# Those of them that may hide a whole call from one parser.
CARRIERS: Final = frozenset({"type", "item", "response", "output"})

# What the provider runs on its own machines, its agents' dealings with each other included, and what is no call at all.
# `tool_search_output`, `additional_tools` and `mcp_list_tools` offer tools; the calls that follow from the offer are judged.
_NOT_CALLS: Final = frozenset(
    {
        "message", "reasoning", "compaction", "web_search_call", "file_search_call", "image_generation_call",
        "code_interpreter_call", "mcp_list_tools", "mcp_approval_response", "additional_tools", "configuration_update",
        "multi_agent_call",
    }
)  # fmt: skip

# Calls of tools that a client brings itself carry no name: they are judged by the tool's, as `native_tools` lists it.
_NATIVE: Final = {
    "local_shell_call": "local_shell",
    "shell_call": "shell",
    "apply_patch_call": "apply_patch",
    "computer_call": "computer",
    "tool_search_call": "tool_search",
    "program": "program",
}

STAND_IN: Final = "msg_agentsh_"  # what the ids of messages of ours begin with
MISTRALS: Final = "function.call"  # the call of Mistral's conversations
_NAMED: Final = frozenset({"function_call", "custom_tool_call", "mcp_call", "mcp_approval_request"})

_ARGUMENTS: Final = ("arguments", "input", "action", "actions", "operation", "code")
_EMPTY: Final[tuple[Any, ...]] = (None, "", [], {})
OTHER_ARGUMENTS: Final = "two different arguments for one call"

_FIELDS: Final = ("name", "namespace", "server_label", "call_id", "id")


def folded(value: Any) -> dict[str, Any]:
    """Return an object with its keys casefolded, as Go's encoding/json matches them; no object has no keys.

    Of keys that differ by case alone the plain one counts, as in `spelled`. Not to be changed: it may be the object itself.
    """
    if not isinstance(value, dict):
        return {}
    if _is_plain(value):
        return value
    found = {key.casefold(): item for key, item in value.items()}
    return found if len(found) == len(value) else found | {k: value[k] for k in found if k in value}


def _is_plain(value: dict[str, Any]) -> bool:
    """Say whether all keys are casefolded already; then no two differ by case alone."""
    keys = "".join(value)
    return keys.casefold() == keys


def spelled(value: dict[str, Any], name: str) -> str:
    """Return the key of `value` that reads as `name`, the way it is written."""
    return name if name in value else next((key for key in reversed(value) if key.casefold() == name), name)


def once(value: Any) -> Any:
    """Return an object without the keys that `folded` passes over."""
    if not isinstance(value, dict):
        return value
    counted = {key.casefold(): key for key in value}
    counted |= {key: key for key in counted if key in value}
    return {key: item for key, item in value.items() if counted[key.casefold()] == key}


def twice(*objects: Any, duplicates: Iterable[str] = ()) -> frozenset[str]:
    """Return the decisive keys that stand twice, literally (`duplicates`) or but for their case."""
    found = {key.casefold() for key in duplicates}
    for value in objects:
        if isinstance(value, dict) and not _is_plain(value):
            found |= {key for key, times in Counter(map(str.casefold, value)).items() if times > 1}
    return DECISIVE & found


def is_call(item: Mapping[str, Any]) -> bool:
    """Say whether a client may execute a folded item, or the provider executed it against an MCP server.

    What is not known to be harmless and looks like a call is one.
    """
    kind = item.get("type")
    if isinstance(kind, str):
        if kind in _NOT_CALLS or kind.endswith("_output"):
            return False
        plain = kind.strip().casefold()
        if plain == "tool_search_call" and item.get("execution") == "server":
            return False
        if "call" in plain or plain in _NATIVE or plain.startswith("mcp_"):
            return True
    return "call_id" in item or "arguments" in item or {"name", "input"} <= item.keys()


@dataclass(frozen=True, slots=True)
class Call:
    """What one place of an answer says about a call. Empty fields say nothing."""

    kind: str = ""
    name: str = ""
    namespace: str = ""
    server_label: str = ""
    call_id: str = ""
    id: str = ""
    arguments: Any = None  # as it stands there: text, or a JSON value where the kind has one
    flaw: str = ""

    @property
    def tool(self) -> str:
        """Return the name that is judged."""
        if self.kind in _NATIVE:
            return _NATIVE[self.kind]
        return self.name if self.name or self.kind in _NAMED else self.kind.removesuffix("_call")

    @property
    def reply_id(self) -> str:
        """Return the id under which the call is answered: MCP items of the provider have only their own."""
        return self.call_id or self.id

    def asked(self) -> ToolCall:
        """Return what the judge is asked about. Text that does not parse, or with a key twice, is given as it is."""
        value = self.arguments
        if isinstance(value, str) and self.kind not in {"custom_tool_call", "program"}:
            value, _ = parsed(value)
        return ToolCall(
            name=self.tool,
            call_id=self.reply_id,
            input=value,
            namespace=self.namespace,
            server_name=self.server_label,
            dialect=NAME,
        )

    def digest(self) -> str:
        """Return what tells arguments apart, whatever their spacing and key order; empty where there are none."""
        value = self.arguments
        if value in (None, ""):
            return ""
        if isinstance(value, str) and self.kind != "custom_tool_call":
            value, _ = parsed(value)
        return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()

    def differs(self, other: Call) -> str:
        """Say in what a later place of an answer contradicts this one about one call; empty where it does not."""
        for part, mine, theirs in (
            ("types", self.kind, other.kind),
            ("names", self.name, other.name),
            ("namespaces", self.namespace, other.namespace),
            ("servers", self.server_label, other.server_label),
            ("call ids", self.call_id, other.call_id),
        ):
            if mine and theirs and mine != theirs:
                return f"two different {part} for one call"
        if isinstance(self.arguments, str) and self.arguments == other.arguments:
            return ""
        if _fills(other.arguments, self.arguments):
            return ""
        mine, theirs = self.digest(), other.digest()
        return OTHER_ARGUMENTS if mine and theirs and mine != theirs else ""

    def joined(self, other: Call) -> Call:
        """Return what both say, `other` last; the first flaw stays."""
        return Call(
            kind=other.kind or self.kind,
            name=other.name or self.name,
            namespace=other.namespace or self.namespace,
            server_label=other.server_label or self.server_label,
            call_id=other.call_id or self.call_id,
            id=self.id or other.id,
            arguments=self.arguments if other.arguments in (None, "") else other.arguments,
            flaw=self.flaw or self.differs(other) or other.flaw,
        )


def doubtful(item: Mapping[str, Any], duplicates: frozenset[str]) -> str:
    """Say why the arguments of a folded item may be read in two ways; text is read again on its own."""
    loose = duplicates and any(isinstance(item.get(key), dict) for key in _ARGUMENTS)
    return f"{clash_of(duplicates)} beside arguments that are no text" if loose else ""


def read_call(item: Mapping[str, Any], flaw: str = "") -> Call:
    """Return what a folded item says."""
    kind = item.get("type")
    if not isinstance(kind, str):
        flaw = flaw or "the item's type is not a string"
    for name in _FIELDS:
        if not isinstance(item.get(name), str | None):
            flaw = flaw or f"the call's {name} is not a string"
    given = {key: item[key] for key in _ARGUMENTS if item.get(key) is not None}
    call = Call(
        kind=text_of(kind).strip().casefold(),
        **{name: text_of(item.get(name)) for name in _FIELDS},
        arguments=given if len(given) > 1 else next(iter(given.values()), None),
        flaw=flaw,
    )
    try:
        call.digest()
    except RecursionError:
        return replace(call, arguments=None, flaw=flaw or "arguments nested too deeply")
    return call


def _fills(later: Any, begun: Any) -> bool:
    """Say whether a value is the other with its empty places filled in: an item of a client's own tool begins with those."""
    return (
        isinstance(later, dict)
        and isinstance(begun, dict)
        and all(value in _EMPTY or value == later.get(key) for key, value in begun.items())
    )


def message(notice: str, replaced: Call, position: int | None, *, begun: bool = False) -> dict[str, Any]:
    """Return the item that stands where a refused one stood; `begun`: as it is before its text comes."""
    if isinstance(notice, Steered):
        return function_call(notice, replaced.id or f"fc_{replaced.call_id}", replaced.call_id, begun=begun)
    own = stand_in_id(replaced.id, replaced.call_id) if replaced.reply_id else stand_in_id(str(position))
    if replaced.kind == MISTRALS:
        told = {"id": own, "role": "assistant", "content": str(notice)}
        return {"object": "entry", "type": "message.output", **told}
    return {
        "id": own,
        "type": "message",
        "status": "in_progress" if begun else "completed",
        "content": [] if begun else [text_part(notice)],
        "role": "assistant",
    }


def stand_in_id(*ids: str) -> str:
    """Return the id of the message that stands where an item stood, by its ids: the API refuses two items of one id."""
    return f"{STAND_IN}{sha256(chr(0).join(ids).encode('utf-8', 'replace')).hexdigest()[:32]}"


def text_part(text: str) -> dict[str, Any]:
    """Return the content part of such a message."""
    return {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
