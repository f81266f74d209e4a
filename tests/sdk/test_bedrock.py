"""What boto3 finally returns is what policy decided, and what reaches AWS is signed by the proxy: through real worker processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

import boto3
import pytest
from botocore import UNSIGNED
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials as BotoCredentials
from botocore.exceptions import ClientError, EventStreamError
from loopback.pool import RunningPool
from loopback.proxy import snapshot
from loopback.upstream import Received, chunked, response
from transcripts import anthropic as messages
from transcripts.bedrock import begin, call, end, start, text, wrapped

ALLOWED, DENIED = "get_weather", "delete_files"
ASKED = {"allowed": [ALLOWED], "blocked": [DENIED], "both": [DENIED, ALLOWED], "none": []}
CITY = {"city": "Bern", "n": 1.5}
MODEL = "us.anthropic.claude-sonnet-4-20250514-v1:0"
OWN = {
    "region": "us-east-1",
    "access_key_id": "AKIDPROXY",
    "secret_access_key": "proxysecret",
    "session_token": "proxytoken",
}
EVENTS = b"application/vnd.amazon.eventstream"

SEEN: list[Received] = []


def is_signed(received: Received) -> bool:
    """Say whether a request carries the signature that botocore makes of what arrived, with the proxy's credentials."""
    date = received.values("x-amz-date")[0].decode()
    host, target = received.values("host")[0].decode(), received.line.split()[1].decode()
    told = received.values("authorization")[0].decode()
    names = told.split("SignedHeaders=")[1].split(",")[0].split(";")
    headers = {
        n: received.values(n)[0].decode()
        for n in names
        if n not in {"host", "x-amz-date", "x-amz-security-token"}
    }
    ours = AWSRequest("POST", f"http://{host}{target}", headers, received.body)
    signer = SigV4Auth(BotoCredentials("AKIDPROXY", "proxysecret", "proxytoken"), "bedrock", "us-east-1")
    with pytest.MonkeyPatch.context() as patch:
        at = datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        patch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: at)
        signer.add_auth(ours)
    return told == ours.headers["Authorization"]


async def provider(conversation: Any, received: Received) -> None:
    """Call the tools that the request names in its text."""
    SEEN.append(received)
    operation = unquote(received.line.split()[1].decode()).rpartition("/")[2]
    body = json.loads(received.body)
    asked = body["messages"][0]["content"][0]["text"]
    names = [name for name in asked.split(",") if name.strip()]
    if operation == "converse-stream":
        data = (
            begin()
            + text(0, "Hello.")
            + b"".join(call(n, name, CITY) for n, name in enumerate(names, 1))
            + end()
        )
        if asked == " broken":
            data = begin() + start(0, ALLOWED)
        await conversation.send(
            *chunked(*(data[at : at + 60] for at in range(0, len(data), 60)), content_type=EVENTS)
        )
    elif operation == "invoke-with-response-stream":
        calls = b"".join(messages.call(n, name, CITY) for n, name in enumerate(names, 1))
        data = wrapped(messages.begin() + messages.text(0, "Hello.") + calls + messages.end())
        await conversation.send(*chunked(data, content_type=EVENTS))
    elif operation == "invoke":
        blocks = [
            {"type": "tool_use", "id": f"t{n}", "name": name, "input": CITY} for n, name in enumerate(names)
        ]
        whole = {
            "type": "message",
            "content": [{"type": "text", "text": "Hello."}, *blocks],
            "stop_reason": "tool_use",
        }
        await conversation.send(response(json.dumps(whole).encode()))
    else:
        uses = [
            {"toolUse": {"toolUseId": f"t{n}", "name": name, "input": CITY}} for n, name in enumerate(names)
        ]
        message = {"role": "assistant", "content": [{"text": "Hello."}, *uses]}
        whole = {
            "output": {"message": message},
            "stopReason": "tool_use",
            "usage": {},
            "metrics": {"latencyMs": 1},
        }
        await conversation.send(response(json.dumps(whole).encode()))


def policy(port: int, aws: dict[str, str] | None = None, **mcp: Any) -> Any:
    given = {"dialect": "bedrock", "base_url": f"http://127.0.0.1:{port}"} | ({"aws": aws} if aws else {})
    return snapshot(port, proxy={"providers": {"bedrock": given}}, **mcp)


@pytest.fixture(scope="module")
def pool() -> Iterator[RunningPool]:
    with RunningPool(provider, lambda port: policy(port, OWN)) as it:
        yield it


def client(base: str, **more: Any) -> Any:
    return boto3.client(
        "bedrock-runtime", region_name="us-east-1", endpoint_url=f"{base}/bedrock", aws_access_key_id="AKIDCLIENT",
        aws_secret_access_key="clientsecret", aws_session_token="clienttoken",
        config=Config(retries={"max_attempts": 0}, **more),
    )  # fmt: skip


def question(names: list[str]) -> list[Any]:
    return [{"role": "user", "content": [{"text": ",".join(names) or " "}]}]


def by_converse(it: Any, names: list[str]) -> tuple[str, list[Any]]:
    content = it.converse(modelId=MODEL, messages=question(names))["output"]["message"]["content"]
    calls = [(b["toolUse"]["name"], b["toolUse"]["input"]) for b in content if "toolUse" in b]
    return "".join(b.get("text", "") for b in content), calls


def by_converse_stream(it: Any, names: list[str]) -> tuple[str, list[Any]]:
    told, calls, inputs = "", [], {}
    for event in it.converse_stream(modelId=MODEL, messages=question(names))["stream"]:
        if "contentBlockStart" in event:
            index = event["contentBlockStart"]["contentBlockIndex"]
            calls.append((event["contentBlockStart"]["start"]["toolUse"]["name"], index))
        delta = event.get("contentBlockDelta", {}).get("delta", {})
        told += delta.get("text", "")
        if "toolUse" in delta:
            index = event["contentBlockDelta"]["contentBlockIndex"]
            inputs[index] = inputs.get(index, "") + delta["toolUse"]["input"]
    return told, [(name, json.loads(inputs[index])) for name, index in calls]


def by_invoke(it: Any, names: list[str]) -> tuple[str, list[Any]]:
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "messages": question(names)})
    content = json.loads(it.invoke_model(modelId=MODEL, body=body)["body"].read())["content"]
    calls = [(b["name"], b["input"]) for b in content if b["type"] == "tool_use"]
    return "".join(b.get("text", "") for b in content), calls


def by_invoke_stream(it: Any, names: list[str]) -> tuple[str, list[Any]]:
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "messages": question(names)})
    told, calls, inputs = "", [], {}
    for event in it.invoke_model_with_response_stream(modelId=MODEL, body=body)["body"]:
        value = json.loads(event["chunk"]["bytes"])
        if value.get("content_block", {}).get("type") == "tool_use":
            calls.append((value["content_block"]["name"], value["index"]))
        delta = value.get("delta", {})
        told += delta.get("text", "")
        if "partial_json" in delta:
            inputs[value["index"]] = inputs.get(value["index"], "") + delta["partial_json"]
    return told, [(name, json.loads(inputs[index])) for name, index in calls]


OPERATIONS = {
    "converse": by_converse,
    "converse-stream": by_converse_stream,
    "invoke": by_invoke,
    "invoke stream": by_invoke_stream,
}


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("case", ASKED)
def test_boto3_gets_what_policy_decided_and_aws_a_request_signed_by_the_proxy(
    pool: RunningPool, case: str, operation: str
) -> None:
    pool.events.clear()
    SEEN.clear()
    names = ASKED[case]
    told, calls = OPERATIONS[operation](client(pool.base), names)
    assert calls == [(name, CITY) for name in names if name == ALLOWED]
    assert told.startswith("Hello.")
    assert told.count("[agentsh] Tool 'delete_files' blocked by policy") == names.count(DENIED)
    events = pool.wait_for_events(len(names))
    assert [(e.tool_name, e.action, e.input) for e in events] == [
        (n, "block" if n == DENIED else "allow", CITY) for n in names
    ]
    (received,) = SEEN
    assert is_signed(received)
    assert received.values("x-amz-security-token") == [b"proxytoken"]
    assert b"AKIDCLIENT" not in received.head
    assert b"clienttoken" not in received.head


def test_a_path_without_a_provider_goes_to_bedrock_too(pool: RunningPool) -> None:
    it = boto3.client(
        "bedrock-runtime",
        region_name="us-east-1",
        endpoint_url=pool.base,
        config=Config(signature_version=UNSIGNED),
    )
    assert by_converse(it, [ALLOWED])[1] == [(ALLOWED, CITY)]


def test_a_stream_that_breaks_within_a_call_raises_and_gives_no_call(pool: RunningPool) -> None:
    with pytest.raises(EventStreamError, match="ended within a call"):
        by_converse_stream(client(pool.base), [" broken"])


def test_without_credentials_a_signed_request_is_refused_with_the_remedy_and_nothing_leaves() -> None:
    SEEN.clear()
    with RunningPool(provider, policy) as it:
        for ask in OPERATIONS.values():
            with pytest.raises(ClientError, match=r"proxy\.providers\.bedrock\.aws") as caught:
                ask(client(it.base), [ALLOWED])
            assert caught.value.response["Error"]["Code"] == "UnrecognizedClientException"
            assert "AWS_BEARER_TOKEN_BEDROCK" in str(caught.value)
    assert SEEN == []


def test_an_api_key_of_the_clients_own_passes_and_needs_no_signature() -> None:
    SEEN.clear()
    with RunningPool(provider, policy) as it:
        # boto3 itself sends an API key over TLS alone; other clients are not so careful.
        key = client(it.base, signature_version=UNSIGNED)
        key.meta.events.register(
            "before-send", lambda request, **_: request.headers.update({"Authorization": "Bearer client-key"})
        )
        assert by_converse_stream(key, [DENIED, ALLOWED])[1] == [(ALLOWED, CITY)]
    assert SEEN[0].values("authorization") == [b"Bearer client-key"]


def test_the_proxys_own_api_key_takes_the_place_of_whatever_the_client_sent() -> None:
    SEEN.clear()
    with RunningPool(provider, lambda port: policy(port, {"bearer_token": "proxy-key"})) as it:
        assert by_converse(client(it.base), [ALLOWED])[1] == [(ALLOWED, CITY)]
    assert SEEN[0].values("authorization") == [b"Bearer proxy-key"]
    assert SEEN[0].values("x-amz-date") == []
