"""The dialect reads what may bring calls, and nothing else; its errors are Google's."""

from __future__ import annotations

import json

import pytest
from transcripts.interactions import WEATHER, call, denying, interaction, told

from agentsh_net.core.dialects.interactions.dialect import DIALECT


@pytest.mark.parametrize(
    ("method", "path", "read"),
    [
        ("POST", "/v1/interactions", True), ("POST", "/v1beta/interactions/", True), ("GET", "/v1beta/Interactions/i1?stream=true", True),
        ("POST", "/v1/interactions/i1/cancel", True), ("GET", "/v1/interactions", True), ("DELETE", "/v1/interactions/i1", False),
        ("POST", "/v1/interactions/i1/other", False), ("POST", "/v1/agents", False),
    ],
)  # fmt: skip
def test_it_reads_what_may_bring_calls(method: str, path: str, *, read: bool) -> None:
    assert DIALECT.inspects(method, path) is read


def test_an_answer_without_calls_is_harmless_and_leaves_unread() -> None:
    plain = json.dumps({"id": "i1", "status": "completed"}).encode()
    assert DIALECT.harmless(plain)
    assert not DIALECT.harmless(json.dumps(interaction(call(WEATHER))).encode())
    spoken = json.dumps(interaction(told("hi"), status="completed")).encode()
    assert DIALECT.body(spoken, denying(), fail_closed=True).out == spoken


def test_errors_are_googles() -> None:
    assert json.loads(DIALECT.error(403, "no"))["error"] == {
        "code": 403,
        "message": "no",
        "status": "PERMISSION_DENIED",
    }
    assert DIALECT.framing is None
