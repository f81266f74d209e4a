"""The dialect as the proxy sees it: its paths, whole answers, Google's errors; an answer without a refusal leaves to the byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts.gemini import DELETE, WEATHER, answer, array, candidate, denying, part, piece, refused, text

from agentsh_net.core.dialects.base import Step
from agentsh_net.core.dialects.gemini.dialect import DIALECT, STREAMED

PREFIXES = (
    "/v1beta/models/gemini-3-pro", "/v1/models/gemini-3-pro", "/v1beta/tunedModels/mine", "/v1internal",
    "/v1/projects/p/locations/global/publishers/google/models/gemini-3-pro", "/v1/projects/p/locations/l/endpoints/5",
)  # fmt: skip


def body(data: Any, *denied: str, fail_closed: bool = False, enforce: bool = True) -> Step:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return DIALECT.body(raw, denying(*denied), fail_closed=fail_closed, enforce=enforce)


@pytest.mark.parametrize("prefix", PREFIXES)
def test_the_path_says_whether_an_answer_streams(prefix: str) -> None:
    assert DIALECT.inspects("POST", f"{prefix}:generateContent")
    assert STREAMED.inspects("POST", f"{prefix}:streamgeneratecontent")
    assert not STREAMED.inspects("POST", f"{prefix}:generateContent")
    assert not DIALECT.inspects("POST", f"{prefix}:streamGenerateContent")
    assert not DIALECT.inspects("GET", f"{prefix}:generateContent")
    assert (STREAMED.request(b"{}").stream, DIALECT.request(b"{}").stream) == (True, False)


@pytest.mark.parametrize("method", ["countTokens", "embedContent", "batchGenerateContent", "predict"])
def test_what_carries_no_call_or_another_format_is_not_read(method: str) -> None:
    path = f"/v1beta/models/m:{method}"
    assert not any(d.inspects("POST", path) for d in (DIALECT, STREAMED))


def test_what_is_put_into_the_cache_is_read_for_its_servers() -> None:
    assert DIALECT.inspects("POST", "/v1beta/cachedContents")
    assert DIALECT.inspects("PATCH", "/v1beta/cachedcontents/x")
    assert not DIALECT.inspects("GET", "/v1beta/cachedContents")


def test_a_refused_call_is_text_in_an_answer_that_is_otherwise_the_same() -> None:
    value = answer(
        text("hm", thought=True, thoughtSignature="s"), part(DELETE, {"x": 1}), part(WEATHER), finish="STOP"
    )
    step = body(value, DELETE)
    want = json.loads(json.dumps(value))
    want["candidates"][0]["content"]["parts"][1] = refused(DELETE)
    assert json.loads(step.out) == want
    assert b"12345678901234567890" in step.out
    assert [(j.call.name, j.verdict.blocked) for j in step.judged] == [(DELETE, True), (WEATHER, False)]
    assert {j.call.dialect for j in step.judged} == {"gemini"}


def test_a_call_in_any_candidate_and_any_element_of_an_array_is_judged() -> None:
    value = {"candidates": [candidate(text("a")), candidate(part(DELETE), index=1)]}
    assert json.loads(body(value, DELETE).out)["candidates"][1]["content"]["parts"] == [refused(DELETE)]
    step = body(array(answer(part(WEATHER)), answer(part(DELETE))), DELETE)
    assert DELETE.encode() + b'"' not in step.out
    assert json.loads(step.out)[1]["candidates"][0]["content"]["parts"] == [refused(DELETE)]


def test_a_call_whose_end_is_missing_is_refused() -> None:
    step = body([answer(piece(WEATHER))])
    assert [j.call.flaw for j in step.judged] == ["the answer ended inside the call"]
    assert b"willContinue" not in step.out


@pytest.mark.parametrize(
    "reason", ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "SAFETY", "STOP", None]
)
def test_no_finish_reason_lets_a_call_pass_or_is_changed(reason: str | None) -> None:
    out = json.loads(body(answer(part(DELETE), finish=reason), DELETE).out)
    assert out["candidates"][0]["content"]["parts"] == [refused(DELETE)]
    assert out["candidates"][0].get("finishReason") == reason


@given(
    st.lists(
        st.sampled_from([text("a\u2028"), part(WEATHER, {"q": ["é"]}), {"inlineData": {"data": "tool"}}]),
        max_size=4,
    ),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_an_answer_without_a_refusal_leaves_to_the_byte(
    parts: list[Any], indent: Any, ascii_only: bool
) -> None:
    data = json.dumps(answer(*parts), indent=indent, ensure_ascii=ascii_only).encode()
    assert body(data, DELETE, fail_closed=True).out == data


def test_where_nothing_is_enforced_the_bytes_stay_and_the_verdict_is_told() -> None:
    data = json.dumps(answer(part(DELETE))).encode()
    step = body(data, DELETE, enforce=False)
    assert step.out == data
    assert [(j.verdict.blocked, j.verdict.denied) for j in step.judged] == [(False, True)]


def test_a_call_that_one_parser_alone_would_see_is_not_relayed() -> None:
    data = b'{"candidates":[{"content":{"parts":[{"functionCall":{"name":"x"}}]}}],"candidates":[],"a":1}'
    step = body(data)
    assert json.loads(step.out) == {"candidates": [], "a": 1}
    assert b"functionCall" not in step.out
    assert [j.verdict.blocked for j in step.judged] == [True]


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, "INVALID_ARGUMENT"), (403, "PERMISSION_DENIED"), (413, "INVALID_ARGUMENT"), (502, "INTERNAL")],
)
def test_errors_are_googles(status: int, code: str) -> None:
    assert json.loads(DIALECT.error(status, "why")) == {
        "error": {"code": status, "message": "why", "status": code}
    }
    assert DIALECT.error_frame("why").startswith(b'data: {"error":')
