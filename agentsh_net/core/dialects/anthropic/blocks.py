"""Content blocks of Anthropic messages: which are calls, what they say, and what stands where a refused one stood.

Whole answers and streams share it. In what order frames come and leave is `stream`'s business.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from agentsh_net.core.dialects.argument_text import parsed
from agentsh_net.core.dialects.base import Judge
from agentsh_net.core.dialects.output import Output, notice
from agentsh_net.core.dialects.steering import Steered, tool_use
from agentsh_net.core.model import ToolCall
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.members import clash_of, text_of

NAME: Final = "anthropic"

# Keys that decide what a parser takes for a call: twice in one object, two parsers see two different things.
DECISIVE: Final = frozenset(
    {
        "type", "index", "message", "content", "content_block", "delta",
        "id", "name", "server_name", "toolset_name", "input", "partial_json",
    }
)  # fmt: skip

# The provider's own tools (`server_tool_use`), which it has run when anybody sees them. LiteLLM hands a block of that type to its caller as
# any other call: under another name it is one.
_PROVIDERS_OWN: Final = frozenset(
    {
        "advisor", "bash_code_execution", "code_execution", "text_editor_code_execution", "tool_search_tool_bm25",
        "tool_search_tool_regex", "web_fetch", "web_search",
    }
)  # fmt: skip
# Of calls that the provider runs: no stop_reason tells of them.
_RUN_BY_PROVIDER: Final = frozenset({"mcp_tool_use", "server_tool_use"})


def folded(value: Any) -> dict[str, Any]:
    """Return an object with its keys casefolded, as Go's encoding/json matches them; no object has no keys."""
    if not isinstance(value, dict):
        return {}
    return value.copy() if is_folded(value) else {key.casefold(): item for key, item in value.items()}


def is_folded(value: dict[str, Any]) -> bool:
    """Say whether all keys are casefolded as they stand, as honest ones are: one look at all of them costs a third of folding each."""
    keys = "".join(value)
    return keys.isascii() and keys == keys.lower()


def spelled(value: dict[str, Any], name: str) -> str:
    """Return the key of `value` that reads as `name`, the way it is written."""
    return next((key for key in reversed(value) if key.casefold() == name), name)


def twice(*objects: Any, duplicates: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the decisive keys that stand twice, literally or but for their case."""
    found = frozenset(key.casefold() for key in duplicates) if duplicates else duplicates
    for value in objects:
        if isinstance(value, dict) and not is_folded(value):
            keys = Counter(key.casefold() for key in value)
            found |= {key for key, times in keys.items() if times > 1}
    return found & DECISIVE if found else found


def is_call(block: Mapping[str, Any]) -> bool:
    """Say whether a folded block may be executed; the provider's own tools are not ours to judge.

    A type that is no string is taken for a call where the rest looks like one: JavaScript compares `["tool_use"]` loosely.
    """
    kind = block.get("type")
    if not isinstance(kind, str):
        return "name" in block or "input" in block
    kind = kind.strip().casefold()
    own = kind == "server_tool_use" and text_of(block.get("name")) in _PROVIDERS_OWN
    return kind.endswith("tool_use") and not own


def flaw_of(block: Mapping[str, Any]) -> str:
    """Say what makes a call mean different things to different clients; empty where nothing does."""
    if not isinstance(block.get("type"), str):
        return "the block's type is not a string"
    if not isinstance(block.get("name"), str):
        return "the tool's name is not a string"
    if not isinstance(block.get("server_name", ""), str):
        return "the server's name is not a string"
    if not isinstance(block.get("toolset_name"), str | None):
        return "the toolset's name is not a string"
    return ""


def arguments(block: Mapping[str, Any], text: str) -> tuple[Any, str]:
    """Return the input of a call and its flaw: what the deltas spelled, or what its start held.

    Text that does not parse, or whose duplicate keys leave open what it says, is returned as it is.
    """
    start = block.get("input")
    if not text:
        return start, ""
    value, _ = parsed(text)
    # Some clients append the deltas to the start's input, some replace it, some ignore one of the two.
    return value, "two different inputs" if start and start != value else ""


def unsure(block: dict[str, Any]) -> None:
    """Turn the input of a folded block into text: a key that stands twice may be in it, and parsers differ on which counts."""
    if isinstance(block.get("input"), dict) and block["input"]:
        block["input"] = strict_json.dump(block["input"])


def stand_in(text: str, refused: Any) -> dict[str, Any]:
    """Return the block that stands where a refused one stood."""
    if isinstance(text, Steered):
        return tool_use(text, folded(refused).get("id"))
    return {"type": "text", "text": text}


class Rulings:
    """What was decided about the calls of one answer, so that its stop_reason and the results in it agree with that."""

    __slots__ = ("_blocked", "_calls", "_judge", "_refused", "_seen")

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._calls = 0  # the client's
        self._blocked = 0
        self._seen = 0
        self._refused: dict[str, str] = {}  # call id -> notice

    @property
    def ends_turn(self) -> bool:
        """Say whether every call that the client would have run was refused."""
        return 0 < self._calls == self._blocked

    def decide(self, block: Mapping[str, Any], value: Any, flaw: str, out: Output, doubt: str = "") -> str:
        """Judge a call and return the notice that replaces it, or nothing where it is allowed."""
        self._seen += 1
        call = ToolCall(
            name=text_of(block.get("name")),
            call_id=text_of(block.get("id")),
            input=value,
            server_name=text_of(block.get("server_name")),
            toolset=text_of(block.get("toolset_name")),
            dialect=NAME,
            flaw=flaw,
            ordinal=self._seen,
            doubt=doubt,
        )
        verdict = self._judge(call)
        out.judged(call, verdict)
        client = text_of(block.get("type")).strip().casefold() not in _RUN_BY_PROVIDER
        self._calls += client
        if not verdict.blocked:
            return ""
        if verdict.steered and client:
            return Steered(notice(call.name, verdict.reason))
        self._blocked += client
        text = notice(call.name, verdict.reason)
        if call.call_id:
            self._refused[call.call_id] = text
        return text

    def withheld(self, block: Mapping[str, Any]) -> str:
        """Return the notice where a block is the result of a refused call: without its call the API would not take it back."""
        if not self._refused or not text_of(block.get("type")).casefold().endswith("tool_result"):
            return ""
        return self._refused.get(text_of(block.get("tool_use_id")), "")

    def replaced(self, content: Any, flaw: str, out: Output, *, doubtful: bool = False) -> dict[int, str]:
        """Judge the calls of a `content` list; return the notices of those entries that may not stay.

        `doubtful`: a key stands twice somewhere.
        """
        notices: dict[int, str] = {}
        for at, entry in enumerate(content if isinstance(content, list) else ()):
            block = folded(entry)
            if doubtful:
                unsure(block)
            if is_call(block):
                flaws = flaw or clash_of(twice(entry)) or flaw_of(block)
                notices[at] = self.decide(block, block.get("input"), flaws, out)
            else:
                notices[at] = self.withheld(block)
        return {at: text for at, text in notices.items() if text}
