"""A request leaves with the proxy's credentials and none of the client's, signed as botocore signs what arrives."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from agentsh_proxy.llm.signing import brings_key, credentialed, without_credentials
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials

from agentsh_net.core.web.aws_signature import Credentials
from agentsh_net.core.web.http_head import parse_request

WHO = Credentials("us-east-1", "AKIDEXAMPLE", "secret", "session")
OPENING = (
    b"POST /model/us.anthropic.claude-v1%3A0/converse?a=b HTTP/1.1\r\nHost: bedrock-runtime.us-east-1.amazonaws.com\r\n"
    b"Content-Type:  application/json \r\nX-Amzn-Bedrock-Trace: ENABLED\r\nUser-Agent: x"
)


def test_what_is_signed_is_what_botocore_would_sign() -> None:
    lines = credentialed(OPENING, b'{"a":1}', WHO).removeprefix(OPENING + b"\r\n").decode().split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines)
    assert fields["X-Amz-Security-Token"] == "session"
    at = datetime.strptime(fields["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    assert abs((datetime.now(UTC) - at).total_seconds()) < 60
    url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.anthropic.claude-v1%3A0/converse?a=b"
    theirs = AWSRequest(
        "POST", url, {"Content-Type": "application/json", "X-Amzn-Bedrock-Trace": "ENABLED"}, b'{"a":1}'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: at)
        SigV4Auth(BotoCredentials("AKIDEXAMPLE", "secret", "session"), "bedrock", "us-east-1").add_auth(
            theirs
        )
    assert fields["Authorization"] == theirs.headers["Authorization"]


def test_a_bearer_token_needs_no_signature() -> None:
    made = credentialed(OPENING, b"", Credentials(bearer_token="t0ken"))
    assert made == OPENING + b"\r\nAuthorization: Bearer t0ken"


def test_the_clients_credentials_are_taken_out_and_nothing_else() -> None:
    fields = b"\r\nA: b\r\nAUTHORIZATION: AWS4-HMAC-SHA256 x\r\nx-amz-date: 1\r\nX-Amz-Security-Token:t\r\nx-amz-content-sha256: e\r\nx-amz-user-agent: y"
    assert without_credentials(fields) == b"\r\nA: b\r\nx-amz-user-agent: y"


@pytest.mark.parametrize(
    ("field", "brings"),
    [
        (b"Authorization: Bearer abc", True), (b"authorization:\tBEARER abc", True), (b"Authorization: AWS4-HMAC-SHA256 Credential=x", False),
        (b"Authorization: Bearer ", False), (b"X-Authorization: Bearer abc", False), (b"A: b", False),
    ],
)  # fmt: skip
def test_only_an_api_key_is_a_key_of_the_clients_own(field: bytes, brings: bool) -> None:
    head = parse_request(b"POST /x HTTP/1.1\r\nHost: a\r\n" + field + b"\r\n\r\n")
    assert brings_key(head) is brings
