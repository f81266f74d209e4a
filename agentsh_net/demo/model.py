"""The scripted model: it reads a request of the Anthropic Messages API and answers with the next call of its scene, or says it is done.

It obeys what it reads, as a real one may: a call that waits for a text (`Turn.sees`) is made only if that text stands in the
request. Pure: a request in, the bytes of a stream out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from agentsh_net.demo import cast
from agentsh_net.demo.scenarios import BY_NAME, LOOT, Scene, Turn

NAME: Final = "demo-model"


def scene_of(request: Mapping[str, Any]) -> Scene:
    """Return the scene that a request belongs to; the agent names it in `metadata`."""
    name, _, number = str(request["metadata"]["user_id"]).partition("/")
    return BY_NAME[name].scenes[int(number)]


def answer(request: Mapping[str, Any]) -> Iterator[bytes]:
    """Yield the answer to a request as server-sent events."""
    scene = scene_of(request)
    said = sum(message["role"] == "assistant" for message in request["messages"])
    turn = scene.turns[said] if said < len(scene.turns) else None
    if turn is None or turn.sees not in read(request):
        yield from _stream({"type": "text", "text": ""}, {"type": "text_delta", "text": "Done."}, "end_turn")
        return
    use = {
        "type": "tool_use",
        "id": f"toolu_{scene.prompt[:1]}{said}",
        "name": name_of(scene, turn),
        "input": {},
    }
    arguments = json.dumps(filled(turn.arguments, secret_in(request)))
    yield from _stream(use, {"type": "input_json_delta", "partial_json": arguments}, "tool_use")


def name_of(scene: Scene, turn: Turn) -> str:
    """Return the name by which the agent offers a tool."""
    return turn.tool if scene.bare else f"mcp__{turn.server}__{turn.tool}"


def read(request: Mapping[str, Any]) -> str:
    """Return all that the model has read: the conversation and the tools."""
    return json.dumps([request.get("tools"), request["messages"]], ensure_ascii=False)


def secret_in(request: Mapping[str, Any]) -> str:
    """Return the secret, if it stands in the conversation."""
    found = cast.SECRET.search(json.dumps(request["messages"]))
    return found[0] if found else ""


def filled(arguments: Mapping[str, Any], secret: str) -> dict[str, Any]:
    """Return arguments with the secret where the script wants it."""
    return {key: secret if value == LOOT else value for key, value in arguments.items()}


def _stream(block: Mapping[str, Any], delta: Mapping[str, Any], reason: str) -> Iterator[bytes]:
    message: dict[str, Any] = {
        "id": "msg_demo", "type": "message", "role": "assistant", "model": NAME, "content": [], "stop_reason": None,
        "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip
    yield _event("message_start", message=message)
    yield _event("content_block_start", index=0, content_block=block)
    yield _event("content_block_delta", index=0, delta=delta)
    yield _event("content_block_stop", index=0)
    yield _event(
        "message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": 1}
    )
    yield _event("message_stop")


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
