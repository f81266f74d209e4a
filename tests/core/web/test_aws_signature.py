"""A request is signed as AWS' published examples are, and as botocore signs it."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials as BotoCredentials
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.web.aws_signature import Credentials, Request, key, signed

# The credentials and the time of AWS' examples and test suite.
WHO = Credentials("us-east-1", "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
DATE = "20150830T123600Z"
HOST = {"Host": "example.amazonaws.com"}

VANILLA = Request("GET", "/", "", HOST, b"")


@pytest.mark.parametrize(
    ("request_", "service", "signature"),
    [
        (VANILLA, "service", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            Request("GET", "/", "Action=ListUsers&Version=2010-05-08",
                    {"host": "iam.amazonaws.com", "content-type": "application/x-www-form-urlencoded; charset=utf-8"}, b""),
            "iam", "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7",
        ),
        (
            Request("POST", "/", "", HOST | {"Content-Type": "application/x-www-form-urlencoded"}, b"Param1=value1"),
            "service", "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
    ],
)  # fmt: skip
def test_the_published_examples_come_out(request_: Request, service: str, signature: str) -> None:
    assert signed(request_, WHO, service=service, date=DATE)["Authorization"].endswith(
        f"Signature={signature}"
    )


def test_the_key_of_the_published_example_comes_out() -> None:
    made = key(WHO, service="iam", day="20150830").hex()
    assert made == "c4afb1cc5771d871763a393e44b703571b55cc28424d1a5e86da6ed3c154a4b9"


SEGMENTS = st.lists(st.text("ab:.~-_ é/%+", min_size=1, max_size=6), min_size=1, max_size=3)
PAIRS = st.lists(st.tuples(st.sampled_from(["a", "b", "A"]), st.text("xy", max_size=3)), max_size=3)


@given(
    SEGMENTS,
    PAIRS,
    st.binary(max_size=20),
    st.sampled_from(["", "session"]),
    st.sampled_from(["GET", "POST"]),
)
def test_botocore_signs_alike(
    segments: list[str], pairs: list[tuple[str, str]], body: bytes, token: str, method: str
) -> None:
    path = "".join(f"/{quote(segment, safe='~')}" for segment in segments if segment.strip("./")) or "/"
    query = "&".join(f"{name}={value}" for name, value in pairs)
    who = Credentials(WHO.region, WHO.access_key_id, WHO.secret_access_key, token)
    ours = signed(
        Request(method, path, query, {"host": "llm.corp:8443", "content-type": "application/json"}, body),
        who, service="bedrock", date=DATE,
    )  # fmt: skip
    theirs = AWSRequest(
        method, f"https://llm.corp:8443{path}?{query}", {"content-type": "application/json"}, body
    )
    at = datetime(2015, 8, 30, 12, 36, tzinfo=UTC)
    signer = SigV4Auth(
        BotoCredentials(who.access_key_id, who.secret_access_key, token or None), "bedrock", WHO.region
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("botocore.auth.get_current_datetime", lambda *_, **__: at)
        signer.add_auth(theirs)
    assert ours["Authorization"] == theirs.headers["Authorization"]
    assert ours.get("X-Amz-Security-Token", "") == token


def test_no_secret_shows_in_a_representation() -> None:
    shown = repr(Credentials("us-east-1", "AKID", "s3cret", "t0ken", "b3arer"))
    assert not any(secret in shown for secret in ("s3cret", "t0ken", "b3arer"))


@pytest.mark.parametrize(
    ("credentials", "usable"),
    [
        (Credentials(), False), (Credentials("r"), False), (Credentials("r", "a"), False), (Credentials("r", "a", "s"), True),
        (Credentials(bearer_token="b"), True),
    ],
)  # fmt: skip
def test_credentials_are_usable_when_they_are_whole(credentials: Credentials, usable: bool) -> None:
    assert credentials.usable is usable
