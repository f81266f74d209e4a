"""The schema of the gateway: a credential is complete or refused, and every reference leads to one."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.configuration import gateway as config_gateway
from agentsh_net.core.configuration import settings
from agentsh_net.core.configuration.schema import At, Refused
from agentsh_net.core.errors import Problem

NAMES = {"server": {"web": "web"}, "security scheme": {"key": "key"}}
API_KEY = {"id": "key", "type": "apiKey", "in": "header", "name": "X-Key", "credential": "hunter2"}
BASIC = {"id": "b", "type": "http", "scheme": "basic", "credential": "user:hunter2"}


def read(reader: Any, value: Any) -> tuple[Any, list[Problem]]:
    problems: list[Problem] = []
    try:
        return reader(At("at", problems, names=NAMES), value), problems
    except Refused:
        return None, problems


def test_a_scheme_says_where_its_credential_stands() -> None:
    assert read(config_gateway.security_scheme, API_KEY) == (
        settings.SecurityScheme("key", "apiKey", "hunter2", "", "header", "X-Key"),
        [],
    )
    assert read(config_gateway.security_scheme, BASIC)[0].scheme == "basic"


def test_a_scheme_does_not_print_its_credential() -> None:
    assert "hunter2" not in repr(read(config_gateway.security_scheme, API_KEY)[0])


@pytest.mark.parametrize(
    ("scheme", "path"),
    [
        (API_KEY | {"in": "cookie"}, "at.in"),
        (API_KEY | {"type": "oauth2"}, "at.type"),
        (API_KEY | {"credential": "  "}, "at.credential"),
        (API_KEY | {"credential": "a\nb"}, "at.credential"),
        (BASIC | {"in": "header"}, "at.in"),
        (BASIC | {"credential": "nocolon"}, "at.credential"),
        ({k: v for k, v in BASIC.items() if k != "credential"}, "at.credential"),
    ],
)
def test_an_incomplete_credential_is_one_problem(scheme: Any, path: str) -> None:
    _, problems = read(config_gateway.security_scheme, scheme)
    assert [p.path for p in problems] == [path]
    assert "hunter2" not in str(problems[0])


def test_a_server_of_the_gateway_is_declared_and_its_credentials_are() -> None:
    gateway = {"servers": {"web": {"upstream_security": "KEY"}}}
    result, problems = read(config_gateway.GATEWAY, gateway)
    assert not problems
    assert result.servers["web"].upstream_security == "key"
    wrong = {"servers": {"web": {"downstream_security": "kex"}, "wib": {}}}
    assert [p.path for p in read(config_gateway.GATEWAY, wrong)[1]] == [
        "at.servers.web.downstream_security",
        "at.servers.wib",
    ]


def test_a_credential_is_passed_through_or_replaced_not_both() -> None:
    gateway = {"servers": {"web": {"upstream_security": "key", "passthrough": True}}}
    assert [p.path for p in read(config_gateway.GATEWAY, gateway)[1]] == ["at.servers.web.passthrough"]


@pytest.mark.parametrize(
    ("user", "found"),
    [("root", ["at.servers.web.user"]), ("0", ["at.servers.web.user"]), ("mcp", [])],
)
def test_no_server_of_the_gateway_runs_as_root(user: str, found: list[str]) -> None:
    web = {"user": user, "downstream_security": "key"}
    made, problems = read(config_gateway.GATEWAY, {"security_schemes": [API_KEY], "servers": {"web": web}})
    assert [problem.path for problem in problems] == found
    assert found or made.servers["web"].user == user


def test_only_who_is_let_in_acts_as_a_servers_user() -> None:
    _, (problem,) = read(config_gateway.GATEWAY, {"servers": {"web": {"user": "mcp"}}})
    assert problem.path == "at.servers.web.user"
    assert "without `downstream_security`" in problem.found


def test_a_gateway_that_is_written_down_is_on_unless_it_says_otherwise() -> None:
    assert read(config_gateway.GATEWAY, {"port": 1})[0].enabled
    assert not read(config_gateway.GATEWAY, {"port": 1, "enabled": False})[0].enabled
    assert not settings.Gateway().enabled


def test_a_credential_is_in_no_field_that_frames_a_request() -> None:
    _, [problem] = read(config_gateway.security_scheme, {**API_KEY, "name": "Content-Length"})
    assert (problem.path, problem.found) == ("at.name", "the field Content-Length")
    assert not read(config_gateway.security_scheme, {**API_KEY, "in": "query", "name": "te"})[1]
