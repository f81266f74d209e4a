"""A request is admitted by its head alone, to the dialect that reads its answer, or refused with the status it deserves."""

from __future__ import annotations

from hashlib import sha256

import pytest
from agentsh_proxy.llm import admission
from agentsh_proxy.llm.admission import Answered, RefusalError, admit
from agentsh_proxy.llm.view import unfold
from loopback.client import raw
from loopback.proxy import snapshot

from agentsh_net.core.web.http_head import parse_request

VIEW = unfold(snapshot(1))
SESSIONS = {sha256(b"tok").hexdigest(): "s1"}


def head(target: str, *fields: bytes, method: str = "POST", host: bytes = b"localhost"):
    return parse_request(raw(target, b"Host: " + host, *fields, method=method))


@pytest.mark.parametrize(
    ("target", "provider", "dialect", "asked", "session"),
    [
        ("/anthropic/v1/messages?beta=1", "anthropic", "anthropic", b"/v1/messages?beta=1", "default"),
        ("/s/tok/openai/v1/chat/completions", "openai", "openai", b"/v1/chat/completions", "s1"),
        ("/anthropic/v1/chat/completions", "anthropic", "openai", b"/v1/chat/completions", "default"),
        ("/openai/v1/messages", "openai", "anthropic", b"/v1/messages", "default"),
        ("/corp/chat/completions", "corp", "openai", b"/team/v1/chat/completions", "default"),
        ("/anthropic/v1/models", "anthropic", None, b"/v1/models", "default"),
        ("http://localhost/v1/messages", "anthropic", "anthropic", b"/v1/messages", "default"),
    ],
)
def test_a_request_goes_where_it_says_and_is_read_by_who_can(target, provider, dialect, asked, session):
    for _ in range(2):  # decided, then remembered
        admitted = admit(head(target), VIEW, SESSIONS)
        assert admitted.provider.name == provider
        assert (admitted.inspected.name if admitted.inspected else None) == dialect
        assert (admitted.target, admitted.session_id) == (asked, session)


def test_what_is_remembered_never_outlives_a_session():
    admit(head("/s/tok/v1/messages"), VIEW, SESSIONS)
    with pytest.raises(RefusalError) as caught:
        admit(head("/s/tok/v1/messages"), VIEW, {})
    assert caught.value.status == 403


def test_what_is_remembered_is_remembered_for_its_host_and_origin_only():
    admit(head("/v1/messages"), VIEW, {})
    for refused in (
        head("/v1/messages", host=b"evil.example"),
        head("/v1/messages", b"Origin: http://evil.example"),
    ):
        with pytest.raises(RefusalError):
            admit(refused, VIEW, {})


def test_memory_is_bounded(monkeypatch):
    monkeypatch.setattr(admission, "MAX_WAYS", 10)
    view = unfold(snapshot(1))
    for n in range(100):
        admit(head(f"/anthropic/v1/files/{n}"), view, {})
    assert len(view.ways) <= 10


def test_an_unread_endpoint_is_admitted_with_a_note_or_refused_by_fail_closed():
    assert admit(head("/openai/v1/threads/runs"), VIEW, {}).unread
    assert not admit(head("/openai/v1/threads/runs", method="DELETE"), VIEW, {}).unread
    with pytest.raises(RefusalError) as caught:
        admit(head("/openai/v1/threads/runs"), unfold(snapshot(1, fail_closed=True)), {})
    assert caught.value.status == 404
    assert caught.value.dialect.name == "openai"


@pytest.mark.parametrize("base_url", ["http://127.0.0.1:1", "http://127.0.0.1:1/agents/v1"])
def test_what_a_provider_or_gateway_is_called_makes_no_endpoint_unread(base_url):
    providers = {"agents": {"dialect": "openai", "base_url": base_url}}
    view = unfold(snapshot(proxy={"providers": providers}, fail_closed=True))
    assert not admit(head("/agents/v1/embeddings"), view, {}).unread
    for target in ("/agents/v1/agents", "/agents/v1/sessions", "/agents/%61gents"):
        with pytest.raises(RefusalError):
            admit(head(target), view, {})


def test_questions_to_the_proxy_itself_are_answered():
    assert isinstance(admit(head("/healthz", method="GET"), VIEW, {}), Answered)


def test_a_websocket_is_refused_in_the_providers_dialect():
    with pytest.raises(RefusalError) as caught:
        admit(head("/openai/v1/chat/completions", b"Upgrade: websocket", method="GET"), VIEW, {})
    assert (caught.value.status, caught.value.dialect.name) == (426, "openai")
    assert caught.value.fields == b"Upgrade: HTTP/1.1\r\n"
    assert admit(head("/openai/v1/models", b"Upgrade: h2c", method="GET"), VIEW, {}).inspected is None


@pytest.mark.parametrize(
    ("target", "settings", "admitted"),
    [
        ("/openai/v1/responses", {"proxy": {"websockets": "inspect"}}, True),
        ("/openai/v1/responses", {}, False),
        ("/openai/v1/chat/completions", {"proxy": {"websockets": "inspect"}}, False),
        ("/slow/v1/responses", {"proxy": {"websockets": "inspect"}}, False),
        ("/openai/v1/responses", {"proxy": {"websockets": "inspect"}, "top": {"llm_storage": {"store_bodies": True}}}, False),
    ],
)  # fmt: skip
def test_a_websocket_is_relayed_where_it_is_inspected_and_nothing_else_has_to_read_it(
    target, settings, admitted
):
    limited = {"dialect": "openai", "base_url": "http://127.0.0.1:1", "limits": {"requests_per_minute": 9}}
    providers = {"openai": {"base_url": "http://127.0.0.1:1"}, "slow": limited}
    settings = {**settings, "proxy": {"providers": providers, **settings.get("proxy", {})}}
    asked = head(target, b"Connection: Upgrade", b"Upgrade: websocket", method="GET")
    if admitted:
        assert admit(asked, unfold(snapshot(**settings)), {}).websocket
        return
    with pytest.raises(RefusalError) as caught:
        admit(asked, unfold(snapshot(**settings)), {})
    assert caught.value.status == 426


def test_a_request_is_no_websocket_unless_it_asks_for_one():
    assert not admit(head("/openai/v1/responses"), VIEW, {}).websocket


def test_a_provider_that_the_proxy_has_no_credentials_for_wants_the_clients_own_key():
    view = unfold(
        snapshot(proxy={"providers": {"aws": {"dialect": "bedrock", "base_url": "http://127.0.0.1:1"}}})
    )
    target = "/aws/model/claude/converse"
    assert admit(head(target, b"Authorization: Bearer k"), view, {}).inspected.name == "bedrock"
    with pytest.raises(RefusalError) as caught:
        admit(head(target, b"Authorization: AWS4-HMAC-SHA256 Credential=x"), view, {})
    assert caught.value.status == 401
    assert "proxy.providers.aws.aws" in str(caught.value)


def test_a_request_is_of_the_session_in_which_its_clients_socket_was_made():
    here = admit(head("/v1/messages"), VIEW, SESSIONS, "mine")
    assert (here.session_id, here.here, here.shown) == ("mine", "mine", "")
    both = admit(head("/s/tok/v1/messages"), VIEW, SESSIONS, "mine")
    assert (both.session_id, both.shown) == ("mine", "s1")


@pytest.mark.parametrize(
    ("asked", "status", "session", "path"),
    [
        (head("/s/tok/openai/v1/realtime?model=m&key=K", b"Upgrade: websocket", method="GET"), 426, "s1", "/s/[redacted]/openai/v1/realtime"),
        (head("/s/guess/v1/messages"), 403, "default", "/s/[redacted]/v1/messages"),
        (head("/v1/messages", host=b"evil.example"), 421, "default", "/v1/messages"),
        (head("/v1/messages", b"Origin: http://evil.example"), 403, "default", "/v1/messages"),
        (head("/openai/v1//responses"), 400, "default", "/openai/v1//responses"),
        (head("http://u:pw@localhost/nobody"), 400, "default", "http://[redacted]@localhost/nobody"),
        (head("/v1/messages", method="TRACE"), 405, "default", "/v1/messages"),
    ],
)  # fmt: skip
def test_who_asked_for_what_is_told_of_a_request_that_is_refused_by_its_head(asked, status, session, path):
    with pytest.raises(RefusalError) as caught:
        admit(asked, VIEW, SESSIONS)
    assert (caught.value.status, caught.value.request) == (status, (session, asked.method, path))


BESIDE = {"servers": [{"id": "beside", "type": "http", "url": "http://127.0.0.1:1/MCP/tools/"}]}


@pytest.mark.parametrize(
    "target",
    [
        "/openai/mcp/tools",
        "/anthropic/mcp/tools/",
        "/anthropic/MCP/%74ools?x=1",
        "/anthropic/mcp/tools/readonly",
    ],
)
def test_no_mcp_server_that_lies_beside_a_provider_is_reached_around_the_gateway(target):
    providers = {name: {"base_url": "http://127.0.0.1:1"} for name in ("openai", "anthropic")}
    view = unfold(snapshot(proxy={"providers": providers}, **BESIDE))
    for _ in range(2):
        with pytest.raises(RefusalError, match="is the MCP server 'beside'") as caught:
            admit(head(target), view, {})
        assert (caught.value.status, caught.value.told) == (403, False)
    audit = unfold(snapshot(proxy={"providers": providers}, enforce_policy=False, **BESIDE))
    admitted = admit(head(target), audit, {})
    assert "is the MCP server 'beside'" in admitted.unread
    assert admitted.beside == "beside"


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:1", "http://127.0.0.1:1/", "http://127.0.0.1:2/v1", "http://localhost:1/v1/models"],
)
def test_a_server_at_the_root_or_elsewhere_leaves_a_provider_alone(url):
    view = unfold(snapshot(1, servers=[{"id": "beside", "type": "http", "url": url}]))
    assert not admit(head("/openai/v1/models", method="GET"), view, {}).unread
    assert admit(head("/v1/messages"), view, {}).inspected is not None
