"""Tokens become values again wherever they stand and however they were cut; every other byte is the upstream's."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts import bedrock as messages

from agentsh_net.core.dialects.bedrock import dialect as bedrock
from agentsh_net.core.dialects.gemini.dialect import STREAMED
from agentsh_net.core.dialects.ollama import dialect as ollama
from agentsh_net.core.dlp import restoring
from agentsh_net.core.dlp.restoring import Restorer, restored
from agentsh_net.core.dlp.tokens import Vault, Vaults

VALUE = 'al"i\n\\ce@example.com'


def vault_and_token() -> tuple[Vault, str]:
    vault = Vaults(b"key").of("s")
    return vault, vault.token(VALUE, "email")


def event(kind: str, **data: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def anthropic(texts: list[str], arguments: list[str]) -> bytes:
    return b"".join(
        [
            *(event("content_block_delta", index=0, delta={"type": "text_delta", "text": t}) + event("ping") for t in texts),
            event("content_block_stop", index=0),
            *(event("content_block_delta", index=1, delta={"type": "input_json_delta", "partial_json": a}) for a in arguments),
            event("content_block_stop", index=1),
        ]
    )  # fmt: skip


def chat(texts: list[str], arguments: list[str]) -> bytes:
    def chunk(delta: dict[str, Any]) -> bytes:
        return b"data: " + json.dumps({"choices": [{"index": 0, "delta": delta}]}).encode() + b"\n\n"

    calls = (chunk({"tool_calls": [{"index": 0, "function": {"arguments": a}}]}) for a in arguments)
    return b"".join([*(chunk({"content": t}) for t in texts), *calls, chunk({}), b"data: [DONE]\n\n"])


def responses(texts: list[str], arguments: list[str]) -> bytes:
    return b"".join(
        [
            *(event("response.output_text.delta", output_index=0, content_index=0, delta=t) for t in texts),
            event("response.output_text.done", output_index=0, text="".join(texts)),
            *(event("response.function_call_arguments.delta", output_index=1, delta=a) for a in arguments),
            event("response.function_call_arguments.done", output_index=1, arguments="".join(arguments)),
        ]
    )


def read(stream: bytes) -> tuple[str, str]:
    """Return the text and the arguments that a client puts together."""
    text = arguments = ""
    for frame in stream.split(b"\n\n"):
        data = frame.partition(b"data: ")[2]
        if not data or data == b"[DONE]":
            continue
        value = json.loads(data)
        delta = value.get("delta", {})
        if isinstance(delta, str):
            text += delta if "text" in value["type"] else ""
            arguments += delta if "arguments" in value["type"] else ""
        else:
            choice = value["choices"][0]["delta"] if "choices" in value else {}
            text += delta.get("text", "") + choice.get("content", "")
            call = choice.get("tool_calls", [{"function": {"arguments": ""}}])[0]
            arguments += delta.get("partial_json", "") + call["function"]["arguments"]
    return text, arguments


def cut(text: str, data: st.DataObject) -> list[str]:
    places = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=8)))
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


@pytest.mark.parametrize("dialect", [anthropic, chat, responses])
@settings(deadline=None)  # a busy machine is no failure
@given(data=st.data())
def test_what_was_tokenised_comes_back_for_any_chunking(dialect: Any, data: st.DataObject) -> None:
    vault, token = vault_and_token()
    text, arguments = f"D {token}, DLP_ and {token}DL", json.dumps({"to": token, "D": "DLP"})
    stream = dialect(cut(text, data), cut(arguments, data))
    restorer, out = Restorer(vault, 1 << 20), b""
    for piece in cut(stream.decode(), data):
        out += restorer.feed(piece.encode())
    out += restorer.finish()
    assert not restorer.holding
    got, called = read(out)
    assert got == text.replace(token, VALUE)
    assert json.loads(called) == {"to": VALUE, "D": "DLP"}
    assert token.encode() not in out


@settings(deadline=None)  # a busy machine is no failure
@given(data=st.data())
def test_a_stream_without_a_token_leaves_as_it_came(data: st.DataObject) -> None:
    vault, token = vault_and_token()
    foreign = token[:-1] + ("A" if token[-1] != "A" else "B")
    stream = (
        anthropic(cut(f"DLP_ D {foreign} DLP_EMAIL_", data), cut('{"D": "DL"}', data))
        + b'data: {broken D"\n\n: D\n\n'
    )
    restorer = Restorer(vault, 1 << 20)
    assert (
        b"".join(restorer.feed(p.encode()) for p in cut(stream.decode(), data)) + restorer.finish() == stream
    )


def test_only_what_may_begin_a_token_waits() -> None:
    vault, token = vault_and_token()
    restorer = Restorer(vault, 1 << 20)
    plain, beginning, end = (
        event("content_block_delta", index=0, delta={"text": t}) for t in ("x", "a DLP", "_x")
    )
    assert restorer.feed(plain) == plain
    assert restorer.feed(beginning) == b""
    assert restorer.holding
    assert restorer.feed(end) == beginning + end
    assert not restorer.holding
    assert token


def test_a_comment_does_not_part_a_token_and_the_end_of_its_block_lets_go_of_it() -> None:
    vault, token = vault_and_token()
    restorer = Restorer(vault, 1 << 20)
    halves = [event("content_block_delta", index=0, delta={"text": text}) for text in (token[:9], token[9:])]
    assert restorer.feed(halves[0]) + restorer.feed(b": still there\n\n") == b""
    out = restorer.feed(halves[1])
    assert read(out)[0] == VALUE and b": still there\n\n" in out
    end = event("content_block_stop", index=0)
    assert restorer.feed(halves[0]) == b""
    assert restorer.feed(end) == halves[0] + end


def test_what_waits_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    vault, _ = vault_and_token()
    restorer = Restorer(vault, 1 << 20)
    one = event("content_block_delta", index=0, delta={"text": "D"})
    monkeypatch.setattr(restoring, "MAX_BYTES", 3 * len(one))
    assert [len(restorer.feed(one)) for _ in range(6)] == [0, 0, 3 * len(one)] * 2


def test_what_waits_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restoring, "MAX_WAITING", 4)
    vault, _ = vault_and_token()
    restorer = Restorer(vault, 1 << 20)
    one = event("content_block_delta", index=0, delta={"text": "D"})
    assert [len(restorer.feed(one)) for _ in range(4)] == [0, 0, 0, 4 * len(one)]


def test_reasoning_keeps_its_tokens_for_its_signature_is_over_them() -> None:
    vault, token = vault_and_token()
    stream = event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": token})
    assert Restorer(vault, 1 << 20).feed(stream) == stream
    whole = json.dumps({"content": [{"type": "thinking", "thinking": token, "signature": token}]}).encode()
    assert restored(whole, vault) == whole


def test_a_whole_body_is_restored_at_every_depth() -> None:
    vault, token = vault_and_token()
    body = {
        "id": 12345678901234567890,
        "content": [
            {"type": "text", "text": token},
            {"type": "tool_use", "input": {"name": token, token: 1}},
        ],
        "choices": [{"message": {"tool_calls": [{"function": {"arguments": json.dumps({"to": token})}}]}}],
    }
    got = json.loads(restored(json.dumps(body).encode(), vault))
    assert got["id"] == 12345678901234567890
    assert got["content"] == [
        {"type": "text", "text": VALUE},
        {"type": "tool_use", "input": {"name": VALUE, VALUE: 1}},
    ]
    assert json.loads(got["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"]) == {"to": VALUE}


def test_what_is_no_json_stays() -> None:
    vault, token = vault_and_token()
    assert restored(f'{{"a": "{token}'.encode(), vault) == f'{{"a": "{token}'.encode()


def test_an_event_of_several_lines_is_written_anew() -> None:
    vault, token = vault_and_token()
    stream = f'event: x\ndata: {{"text":\ndata: "{token}"}}\n\n'.encode()
    out = Restorer(vault, 1 << 20).feed(stream)
    assert out.startswith(b"event: x\ndata: {")
    assert json.loads(out.replace(b"data: ", b"").partition(b"\n")[2]) == {"text": VALUE}


def lines_of(pieces: list[str]) -> bytes:
    said = (json.dumps({"message": {"role": "assistant", "content": p}, "done": False}) for p in pieces)
    return "\n".join([*said, '{"done":true}\n']).encode()


def array_of(pieces: list[str]) -> bytes:
    said = (json.dumps({"candidates": [{"content": {"parts": [{"text": p}]}}]}) for p in pieces)
    return b"[" + ",\r\n".join(said).encode() + b"]"


def said_in_lines(stream: bytes) -> str:
    return "".join(json.loads(x).get("message", {}).get("content", "") for x in stream.splitlines() if x)


def said_in_array(stream: bytes) -> str:
    return "".join(x["candidates"][0]["content"]["parts"][0]["text"] for x in json.loads(stream))


@pytest.mark.parametrize(
    ("dialect", "write", "said"),
    [(ollama.DIALECT, lines_of, said_in_lines), (STREAMED, array_of, said_in_array)],
    ids=["lines", "array"],
)
@settings(deadline=None)  # a busy machine is no failure
@given(data=st.data())
def test_streams_in_other_framings_come_back_for_any_chunking(
    dialect: Any, write: Any, said: Any, data: st.DataObject
) -> None:
    vault, token = vault_and_token()
    text = f"D {token}, DLP_ and {token}DL"
    stream = write(cut(text, data))
    restorer, out = Restorer(vault, 1 << 20, dialect.framing(1 << 20)), b""
    for piece in cut(stream.decode(), data):
        out += restorer.feed(piece.encode())
    out += restorer.finish()
    assert said(out) == text.replace(token, VALUE)


@pytest.mark.parametrize(
    "dialect", [bedrock.CONVERSE_STREAM, bedrock.INVOKE_STREAM], ids=["converse", "invoke"]
)
@pytest.mark.parametrize("cuts", [(), (3, 9), tuple(range(1, 20))])
def test_tokens_come_back_in_messages_however_they_were_cut(dialect: Any, cuts: tuple[int, ...]) -> None:
    vault, token = vault_and_token()
    said = f"to {token}, now"
    at = [0, *cuts, len(said)]
    pieces = [said[a:b] for a, b in pairwise(at)]
    if dialect is bedrock.CONVERSE_STREAM:
        stream = (
            b"".join(messages.say(0, piece) for piece in pieces)
            + messages.call(1, "f", {"to": token})
            + messages.end()
        )
    else:
        stream = messages.wrapped(anthropic(pieces, ['{"to":"', token, '"}']))
    framing = dialect.framing(1 << 20)
    restorer = Restorer(vault, 1 << 20, framing)
    out = b"".join(restorer.feed(stream[n : n + 50]) for n in range(0, len(stream), 50)) + restorer.finish()
    told, spelled = "", ""
    for frame in dialect.framing(1 << 20).frames.feed(out):
        assert not frame.flaw
        delta = json.loads(frame.data or b"{}").get("delta", {})
        told += delta.get("text", "")
        spelled += delta.get("partial_json", "") + delta.get("toolUse", {}).get("input", "")
    assert told == f"to {VALUE}, now"
    assert json.loads(spelled) == {"to": VALUE}
