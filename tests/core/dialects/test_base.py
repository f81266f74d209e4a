"""The seam of the dialects: every dialect of the catalog has all of it, and its steps and facts are plain values."""

from __future__ import annotations

import json
import re

import pytest

from agentsh_net.core.dialects.base import Fault, Limits, Step, asked
from agentsh_net.core.dialects.catalog import BY_NAME
from agentsh_net.core.framing import event_stream

DIALECTS = pytest.mark.parametrize("name", sorted(BY_NAME))


def test_a_step_without_facts_is_its_bytes() -> None:
    assert Step(b"x") == Step(b"x", (), (), end=False)


def test_equal_faults_are_equal() -> None:
    assert Fault("malformed_json", "d", cut=True) == Fault("malformed_json", "d", cut=True)


def test_a_stream_may_hold_more_than_one_frame() -> None:
    assert Limits().held >= Limits().max_frame


@pytest.mark.parametrize(
    ("method", "path", "is_asked"),
    [
        ("POST", "/v1/chat", True),
        ("post", "/V1/Chat//?beta=1", True),
        ("GET", "/v1/chat", False),
        ("POST", "/v1/chat/1", False),
        ("POST", "/x/v1/chat", False),
    ],
)
def test_a_path_is_asked_for_however_a_lenient_router_may_be_asked(
    method: str, path: str, is_asked: bool
) -> None:
    assert asked({"POST": re.compile("/v1/chat")}, method, path) is is_asked


@DIALECTS
@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 429, 502, 503, 504])
def test_every_error_is_json_of_the_providers_shape_and_says_why(name: str, status: int) -> None:
    body = json.loads(BY_NAME[name].error(status, "why it was refused"))
    told = body if name == "bedrock" else body["error"]
    if name == "ollama":
        assert told == "why it was refused"
    else:
        assert told["message"] == "why it was refused"
        assert told.get("type") or told.get("status") or told["__type"]


@DIALECTS
def test_an_error_frame_is_whole_and_carries_the_reason(name: str) -> None:
    frame = BY_NAME[name].error_frame("why\nit ended")
    if name == "bedrock":
        frame = event_stream.read(frame).payload + b"\n\n"
    assert frame.endswith(b"\n" if name == "ollama" else (b"\n\n", b"\r\n\r\n"))
    assert b"why\\nit ended" in frame


@DIALECTS
def test_a_dialect_inspects_no_path_that_is_not_its_own(name: str) -> None:
    dialect = BY_NAME[name]
    assert not dialect.inspects("GET", "/healthz")
    assert not dialect.inspects("POST", "/")
