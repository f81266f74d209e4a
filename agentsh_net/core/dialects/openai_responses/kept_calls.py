"""Refused calls as OpenAI keeps them: it waits for their results, and wants a reasoning item followed by the call that it led to.

So a request that goes on from such a call's answer, or conversation, brings the result that policy refused it; and the message that
the client got in the call's place, or a reference to it, becomes the call and its result again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentsh_net.core.dialects.openai_responses.items import STAND_IN, Call, stand_in_id
from agentsh_net.core.model import Kept
from agentsh_net.core.values.members import text_of

MAX_LENGTH: Final = 256  # of ids; OpenAI's have 64 at most
MAX_TEXT: Final = 1024  # characters of a result

_GOING_ON: Final = frozenset({"previous_response_id", "conversation"})
_REFERENCE: Final = "item_reference"
_FORGOTTEN: Final = "[agentsh] A tool call was blocked by policy."


class Place(NamedTuple):
    """Where a request goes on: an answer stays as it is; a conversation grows, so that it is told once."""

    id: str = ""
    grows: bool = False


class Told(NamedTuple):
    """A refused call and its result, as a request brings them."""

    call: Mapping[str, Any]
    result: Mapping[str, Any]


def places(answer: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the ids from which a request can go on behind an answer."""
    return tuple(filter(None, (text_of(answer.get("id")), _conversation(answer))))


def kept(call: Call, kept_in: tuple[str, ...], text: str) -> Kept | None:
    """Return a refused call as its provider keeps it; None where nobody can bring its result. `text` is what the client reads."""
    result = _result(call, text[:MAX_TEXT])
    if (
        not (kept_in and call.reply_id and result)
        or max(map(len, (*kept_in, call.id, call.call_id))) > MAX_LENGTH
    ):
        return None
    return Kept(kept_in, result, stand_in_id(call.id, call.call_id), _repeated(call) or reference(call.id))


def reference(item_id: str) -> dict[str, Any]:
    """Return what stands for an item that the provider has."""
    return {"type": _REFERENCE, "id": item_id}


def goes_on_from(request: Mapping[str, Any]) -> Place:
    """Return where a request goes on."""
    before = request.get("previous_response_id")
    return Place(before) if isinstance(before, str) else Place(_conversation(request), grows=True)


def repeats_calls(request: Mapping[str, Any]) -> bool:
    """Say whether a request may go on from a refused call."""
    if not _GOING_ON.isdisjoint(request):
        return True
    items = request.get("input")
    return isinstance(items, list) and any(
        "id" in item and stands_for(item) for item in items if isinstance(item, dict)
    )


def stands_for(item: Any) -> str:
    """Return the id of a message of ours that an item of a request is, or refers to; empty where it does not."""
    named = item.get("id") if isinstance(item, dict) else None
    return named if isinstance(named, str) and named.startswith(STAND_IN) else ""


def restored(
    item: Mapping[str, Any], told: Told | None, waiting: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield what takes the place of a message of ours in a request; `waiting` are the results that it brings anyway."""
    refers = item.get("type") == _REFERENCE
    if told is None:  # long ago, or before the daemon was started
        yield {"role": "assistant", "content": _FORGOTTEN} if refers else item
        return
    call, result = told
    if any(answers(result) == answers(each) for each in waiting):
        yield result
    elif refers:
        yield reference(call["id"]) if call.get("id") else call
        yield result
    elif call.get("type") == _REFERENCE:
        yield item  # the provider may not have the call
    else:
        yield call
        yield result


def answers(item: Any) -> str:
    """Return the id of the call that an item is the result of; empty where it is none."""
    if not isinstance(item, dict) or not text_of(item.get("type")).endswith(("_output", "_response")):
        return ""
    return next(
        (named for key in ("call_id", "approval_request_id", "id") if (named := text_of(item.get(key)))), ""
    )


def _conversation(value: Mapping[str, Any]) -> str:
    named = value.get("conversation")
    return text_of(named.get("id") if isinstance(named, dict) else named)


def _repeated(call: Call) -> dict[str, Any] | None:
    """Return a call as a client repeats it; None where not all of it is known."""
    said = {"function_call": "arguments", "custom_tool_call": "input"}.get(call.kind)
    if said is None or call.flaw or not isinstance(call.arguments, str):
        return None
    names = {"id": call.id, "call_id": call.call_id, "name": call.name, "namespace": call.namespace}
    return {"type": call.kind, **{key: name for key, name in names.items() if name}, said: call.arguments}


def _result(call: Call, text: str) -> dict[str, Any] | None:
    """Return the result of a refused call, in the shape of its kind; None where it needs more than words (a screenshot)."""
    match call.kind:
        case "function_call" | "custom_tool_call" if call.call_id:
            return {"type": f"{call.kind}_output", "call_id": call.call_id, "output": text}
        case "apply_patch_call":
            return {
                "type": "apply_patch_call_output",
                "call_id": call.reply_id,
                "status": "failed",
                "output": text,
            }
        case "shell_call":
            outcome = {"type": "exit", "exit_code": 126}  # found, and not to be executed
            said = {"stdout": "", "stderr": text, "outcome": outcome}
            return {"type": "shell_call_output", "call_id": call.reply_id, "output": [said]}
        case "local_shell_call":
            return {"type": "local_shell_call_output", "id": call.reply_id, "output": text}
        case "mcp_approval_request":
            return {
                "type": "mcp_approval_response",
                "approval_request_id": call.id,
                "approve": False,
                "reason": text,
            }
    return None
