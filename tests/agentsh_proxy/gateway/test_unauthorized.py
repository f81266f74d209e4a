"""A 401 reaches only a client that can mend it; anybody else is told what would."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from agentsh_proxy.gateway.unauthorized import check
from agentsh_proxy.gateway.view import Place, unfold
from agentsh_proxy.http_client import Response
from gateway_front import snapshot

from agentsh_net.core.errors import ProtocolError

LOGIN = (("www-authenticate", 'Bearer resource_metadata="https://x.test/m"'),)
PLAIN = (("www-authenticate", "Bearer"),)
OWN = [{"id": "b", "type": "http", "scheme": "bearer", "credential": "u"}]


def place(headers: dict[str, str] | None = None, **settings: Any) -> Place:
    peer = {
        "id": "peer",
        "type": "http",
        "url": "http://127.0.0.1:1/mcp",
        **({"headers": headers} if headers else {}),
    }
    gateway = {"security_schemes": OWN, "servers": {"peer": settings}}
    return unfold(snapshot([peer], gateway=gateway)).places["peer"]


def answer(status: int, headers: tuple[tuple[str, str], ...]) -> Response:
    return cast("Response", SimpleNamespace(status=status, headers=headers))


@pytest.mark.parametrize(
    ("where", "asked", "challenge", "why"),
    [
        (place(), {}, LOGIN, "login of its own"),
        (place(passthrough=True), {}, LOGIN, "login of its own"),
        (place(passthrough=True), {"authorization": "Bearer old"}, LOGIN, ""),
        (place(passthrough=True), {}, PLAIN, ""),
        (place(), {}, PLAIN, "refuses the gateway's credential"),
        (place(upstream_security="b"), {}, LOGIN, "refuses the gateway's credential"),
        (place({"Authorization": "Bearer declared"}), {}, LOGIN, "refuses the gateway's credential"),
    ],
)
def test_who_can_mend_it_gets_it(where: Place, asked: dict[str, str], challenge: Any, why: str) -> None:
    if not why:
        check(answer(401, challenge), where, asked)
        return
    with pytest.raises(ProtocolError, match=why) as refused:
        check(answer(401, challenge), where, asked)
    assert refused.value.status == 502


def test_any_other_answer_is_none_of_its_business() -> None:
    check(answer(403, LOGIN), place(), {})
    check(answer(200, ()), place(), {})
