"""No credential of a head, or of a server that a provider is to call, is written down; the rest is."""

from __future__ import annotations

import json
import time

import pytest

from agentsh_net.core.web.http_redaction import handed, target, written


@pytest.mark.parametrize(
    "line",
    [
        b"Authorization: Bearer s3cret", b"authorization:s3cret", b"X-Api-Key: s3cret", b"x-goog-api-key: s3cret", b"api-key: s3cret",
        b"Cookie: a=s3cret", b"Set-Cookie: a=s3cret; Path=/", b"Proxy-Authorization: Basic s3cret", b"X-Amz-Security-Token: s3cret",
        b"X-Custom-Secret: s3cret", b"x-session-id: s3cret", b"Location: https://a/b?x=1&access_token=s3cret", b"Referer: https://u:s3cret@h/",
    ],
)  # fmt: skip
def test_a_field_with_a_credential_loses_its_value(line: bytes) -> None:
    out = written(b"POST / HTTP/1.1\r\nHost: h\r\n" + line + b"\r\nX-Kept: 1")
    assert b"s3cret" not in out
    assert out.startswith(b"POST / HTTP/1.1\r\nHost: h\r\n" + line.partition(b":")[0])
    assert out.endswith(b"\r\nX-Kept: 1")


@pytest.mark.parametrize("name", [b"key", b"api_key", b"X-Goog-Signature", b"sig", b"code", b"token"])
def test_a_parameter_with_a_credential_loses_its_value(name: bytes) -> None:
    line = b"GET /v1/x?alt=sse&%b=s3cret&beta=true HTTP/1.1" % name
    assert written(line) == b"GET /v1/x?alt=sse&%b=[redacted]&beta=true HTTP/1.1" % name


@pytest.mark.parametrize(
    "line",
    [
        b"anthropic-version: 2023-06-01",
        b"Content-Type: a/b",
        b"anthropic-ratelimit-tokens-remaining: 9",
        b"retry-after: 1",
    ],
)
def test_other_fields_stay(line: bytes) -> None:
    assert written(b"HTTP/1.1 200 OK\r\n" + line) == b"HTTP/1.1 200 OK\r\n" + line


def test_a_target_without_a_query_stays() -> None:
    assert target(b"/v1/messages") == b"/v1/messages"


KEPT = {
    "model": "m",
    "messages": [{"role": "user", "content": 'say {"authorization": "mine"} and "headers": {"a": "b"}'}],
}


@pytest.mark.parametrize(
    "asked",
    [
        {
            "mcp_servers": [
                {"type": "url", "url": "https://h/mcp?t=s3cret&a=1", "authorization_token": "s3cret"}
            ]
        },
        {"tools": [{"type": "mcp", "server_url": "https://u:s3cret@h/mcp", "authorization": 'a"s3cret'}]},
        {"tools": [{"type": "mcp", "headers": {"Authorization": "Bearer s3cret", "X-Org": "{s3cret}\\"}}]},
        {
            "tools": [
                {
                    "mcpServers": [
                        {"streamableHttpTransport": {"url": "https://h", "headers": {"k": "s3cret"}}}
                    ]
                }
            ]
        },
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", " : ")])
def test_what_gets_a_provider_into_an_mcp_server_is_left_out_and_the_rest_stays(
    asked: dict, separators: tuple[str, str]
) -> None:
    out = handed(json.dumps({**KEPT, **asked}, separators=separators).encode())
    assert b"s3cret" not in out
    read = json.loads(out)
    assert {name: read[name] for name in KEPT} == KEPT
    assert read.keys() == {**KEPT, **asked}.keys()


def test_an_escaped_slash_hides_no_credential() -> None:
    assert handed(rb'{"server_url":"https:\/\/u:s3cret@h\/"}') == b'{"server_url":"https://[redacted]@h/"}'


def test_a_long_image_costs_little() -> None:
    body = (
        b'{"image_url":{"url":"data:image/png;base64,'
        + b"A" * 5_000_000
        + b'"},"authorization":"'
        + b'\\"' * 100_000
    )
    start = time.process_time()
    assert handed(body) == body
    assert time.process_time() - start < 0.5


def test_a_body_without_any_is_the_very_bytes() -> None:
    body = b'{"model":"m","messages":[]}'
    assert handed(body) is body
