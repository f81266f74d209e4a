"""A provider is complete or every gap in it is named; its credentials are shown in no problem."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.configuration.config import parse
from agentsh_net.core.configuration.settings import DEFAULT_PROVIDERS, Provider
from agentsh_net.core.errors import ConfigError
from agentsh_net.core.web.aws_signature import Credentials

KEYS = {"access_key_id": "AKID", "secret_access_key": "s3cret"}
HOST = "https://bedrock-runtime.eu-central-1.amazonaws.com"


def providers(**given: Any) -> dict[str, Provider]:
    return dict(parse({"proxy": {"providers": given}}).proxy.providers)


def problems(**given: Any) -> dict[str, str]:
    with pytest.raises(ConfigError) as caught:
        providers(**given)
    assert "s3cret" not in str(caught.value)
    return {
        problem.path.removeprefix("proxy.providers."): f"{problem.found} {problem.expected}"
        for problem in caught.value.problems
    }


def test_four_are_built_in_and_keep_their_dialect() -> None:
    assert set(providers()) == {"anthropic", "openai", "gemini", "ollama"}
    mine = providers(gemini={"base_url": "https://llm.corp"}, ollama={"base_url": "http://gpu:11434"})
    assert (mine["gemini"].dialect, mine["ollama"].dialect) == ("gemini", "ollama")
    assert mine["openai"] == DEFAULT_PROVIDERS["openai"]
    assert (
        "only anthropic, openai, gemini, ollama have a default"
        in problems(x={"dialect": "openai"})["x.base_url"]
    )
    assert "aws: {region: ...}" in problems(x={"dialect": "bedrock"})["x.base_url"]
    assert "anthropic | openai | gemini | ollama | bedrock" in problems(x={"base_url": HOST})["x.dialect"]


def test_bedrock_is_where_its_region_is_and_the_region_where_its_host_says() -> None:
    by_region = providers(bedrock={"dialect": "bedrock", "aws": {"region": "eu-central-1", **KEYS}})[
        "bedrock"
    ]
    assert by_region.base_url == HOST
    assert by_region.aws == Credentials("eu-central-1", "AKID", "s3cret")
    by_host = providers(aws={"dialect": "bedrock", "base_url": HOST, "aws": KEYS})["aws"]
    assert by_host.aws.region == "eu-central-1"
    assert by_host.aws.usable
    elsewhere = providers(
        aws={"dialect": "bedrock", "base_url": "https://llm.corp", "aws": {"region": "us-east-1", **KEYS}}
    )["aws"]
    assert elsewhere.base_url == "https://llm.corp"


def test_without_credentials_or_with_a_bearer_token_nothing_is_missing() -> None:
    assert not providers(b={"dialect": "bedrock", "base_url": HOST})["b"].aws.usable
    assert providers(b={"dialect": "bedrock", "base_url": HOST, "aws": {"bearer_token": "t"}})["b"].aws.usable


@pytest.mark.parametrize(
    ("given", "path", "says"),
    [
        (
            {"dialect": "bedrock", "base_url": "https://llm.corp", "aws": KEYS},
            "x.aws.region",
            "signed with all three",
        ),
        (
            {"dialect": "bedrock", "base_url": HOST, "aws": {"access_key_id": "A"}},
            "x.aws.secret_access_key",
            "all three",
        ),
        (
            {"dialect": "bedrock", "base_url": HOST, "aws": {"session_token": "s3cret"}},
            "x.aws.access_key_id",
            "all three",
        ),
        (
            {"dialect": "bedrock", "base_url": HOST, "aws": KEYS | {"bearer_token": "s3cret"}},
            "x.aws",
            "one of them",
        ),
        ({"dialect": "openai", "base_url": "https://x", "aws": KEYS}, "x.aws", "`dialect: bedrock` only"),
        ({"dialect": "bedrock", "aws": {"region": "Frankfurt"}}, "x.aws.region", "such as us-east-1"),
        (
            {"dialect": "bedrock", "base_url": HOST, "aws": {"secret_access_key": " "}},
            "x.aws.secret_access_key",
            "${AWS_SECRET_ACCESS_KEY}",
        ),
        (
            {"dialect": "bedrock", "base_url": HOST, "aws": {"secret_access_key": "s3cret\nx"}},
            "x.aws.secret_access_key",
            "line breaks",
        ),
        ({"dialect": "bedrock", "base_url": HOST, "aws": {"profile": "x"}}, "x.aws.profile", "unknown key"),
    ],
)
def test_a_gap_is_named_with_its_remedy(given: dict[str, Any], path: str, says: str) -> None:
    assert says in problems(x=given)[path]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"dialect": "bedrock", "aws": {"region": ["eu-central-1"]}}, "x.aws.region"),
        ({"dialect": "bedrock", "aws": {"regoin": "eu-central-1"}}, "x.aws.regoin"),
        ({"dialect": "bedrok", "aws": {"region": "eu-central-1"}}, "x.dialect"),
    ],
)
def test_a_slip_beside_aws_is_one_problem(given: dict[str, Any], path: str) -> None:
    assert problems(x=given).keys() == {path}
