"""No credential of a head is written down, wherever a client or a provider puts it; the rest is."""

from __future__ import annotations

import pytest

from agentsh_net.core.http_redaction import target, written


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
