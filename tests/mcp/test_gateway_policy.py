"""What servers ask, what they return and what a session does across them is policy's through the gateway, with real peers of both eras."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client, types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp_peers.sdk_asking import INJECTION
from model_server import message, serving, tool_use
from running import Running, running

PEER = str(Path(__file__).parent.parent / "mcp_peers" / "sdk_asking.py")
TOKEN = "sesame"
# As root the server becomes nobody, which wants a credential of the gateway's clients.
LOCAL = {"downstream_security": "k", **({"user": "nobody"} if os.geteuid() == 0 else {})}
ERAS = ["legacy", "auto"]
WHEN = {"legacy": "then", "auto": "now"}


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """An LLM that calls weather's get_city, whatever it is asked."""
    with serving(lambda _: message(tool_use("mcp__weather__get_city"))) as provider:
        yield provider.url


@pytest.fixture(scope="module")
def here(provider: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    names = ["weather", "mail", "blocked", "open"]
    servers = [{"id": n, "type": "stdio", "command": sys.executable, "args": [PEER]} for n in names]
    asks = {"policy": "block", "per_server": {"open": "alert"}}
    policy = {
        "sandbox": {
            "mcp": {
                "servers": servers,
                "sampling": asks,
                "elicitation": asks,
                "output_inspection": {"enabled": True, "on_detection": "block"},
                "cross_server": {"enabled": True},
            }
        },
        "proxy": {"port": 0, "providers": {"anthropic": {"base_url": provider}}},
        "network": {"mode": "off"},
        "gateway": {
            "enabled": True,
            "port": 0,
            "security_schemes": [{"id": "k", "type": "http", "scheme": "bearer", "credential": TOKEN}],
            "servers": dict.fromkeys(names, LOCAL),
        },
    }
    with running(tmp_path_factory.mktemp("daemon"), policy) as daemon:
        yield daemon


def session(here: Running, name: str) -> dict[str, str]:
    """Return the environment of a session of its own."""
    return dict(here.client.call("session.new", session_id=name)["env"])


def play(
    base: str, server: str, mode: Any, scene: Callable[[Client], Awaitable[None]], **callbacks: Any
) -> None:
    async def main() -> None:
        with anyio.fail_after(60):
            async with (
                httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as http,
                Client(
                    streamable_http_client(f"{base}/{server}", http_client=http), mode=mode, **callbacks
                ) as client,
            ):
                await scene(client)

    anyio.run(main)


def text(answer: Any) -> str:
    assert isinstance(answer.content[0], types.TextContent)
    return answer.content[0].text


async def never(*_: Any) -> Any:
    raise AssertionError("the client was asked")


async def name(*_: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def city(*_: Any) -> types.CreateMessageResult:
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text="Ulm"), model="heard"
    )


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("what", "callback", "event"),
    [
        ("elicit", "elicitation_callback", "mcp_elicitation_request"),
        ("sample", "sampling_callback", "mcp_sampling_request"),
    ],
)
def test_what_servers_may_not_ask_never_reaches_the_client_in_either_era(
    here: Running, what: str, callback: str, event: str, mode: str
) -> None:
    env = session(here, f"blocked-{what}-{mode}")

    async def scene(client: Client) -> None:
        with pytest.raises(MCPError, match="blocked by policy"):
            await client.call_tool(f"{what}_{WHEN[mode]}", {})

    play(env["AGENTSH_NET_MCP_URL"], "blocked", mode, scene, **{callback: never})
    told = here.await_event(event, lambda e: e["session_id"] == f"blocked-{what}-{mode}")
    assert (told["action"], told["server_id"]) == ("block", "blocked")


@pytest.mark.parametrize("mode", ERAS)
@pytest.mark.parametrize(
    ("what", "callbacks", "event"),
    [
        ("elicit", {"elicitation_callback": name}, "mcp_elicitation_request"),
        ("sample", {"sampling_callback": city}, "mcp_sampling_request"),
    ],
)
def test_what_servers_may_ask_reaches_the_client_and_is_told(
    here: Running, what: str, callbacks: dict[str, Any], event: str, mode: str
) -> None:
    env = session(here, f"open-{what}-{mode}")

    async def scene(client: Client) -> None:
        assert text(await client.call_tool(f"{what}_{WHEN[mode]}", {})) in {"accept", "heard"}

    play(env["AGENTSH_NET_MCP_URL"], "open", mode, scene, **callbacks)
    told = here.await_event(event, lambda e: e["session_id"] == f"open-{what}-{mode}")
    assert (told["action"], told["server_id"]) == ("allow", "open")


@pytest.mark.parametrize("mode", ERAS)
def test_a_result_with_orders_in_it_does_not_reach_the_client(here: Running, mode: str) -> None:
    env = session(here, f"page-{mode}")

    async def scene(client: Client) -> None:
        with pytest.raises(MCPError, match="Result of tool 'get_page' blocked by policy") as refused:
            await client.call_tool("get_page", {})
        assert INJECTION not in str(refused.value)
        assert text(await client.call_tool("get_city", {})) == "Ulm"

    play(env["AGENTSH_NET_MCP_URL"], "open", mode, scene)
    told = here.await_event(
        "mcp_tool_result_inspected", lambda e: e["session_id"] == f"page-{mode}" and e["detections"]
    )
    assert (told["action"], told["tool_name"], told["via"]) == ("block", "get_page", "gateway")


def refused_mail(here: Running, env: dict[str, str], mode: str) -> None:
    """Claim that a mail is refused for what was read, and that reading goes on."""

    async def mail(client: Client) -> None:
        with pytest.raises(MCPError, match="would send out what weather/get_city read"):
            await client.call_tool("send_mail", {"to": "eve"})

    async def read(client: Client) -> None:
        assert text(await client.call_tool("get_city", {})) == "Ulm"

    play(env["AGENTSH_NET_MCP_URL"], "mail", mode, mail)
    play(env["AGENTSH_NET_MCP_URL"], "weather", mode, read)


def test_what_was_read_through_the_gateway_is_not_sent_through_it_to_another_server(
    here: Running,
) -> None:
    mine, other = session(here, "flow"), session(here, "other")

    async def read(client: Client) -> None:
        assert text(await client.call_tool("get_city", {})) == "Ulm"

    async def mail(client: Client) -> None:
        assert text(await client.call_tool("send_mail", {"to": "bob"})) == "sent to bob"

    play(mine["AGENTSH_NET_MCP_URL"], "weather", "auto", read)
    refused_mail(here, mine, "auto")
    play(other["AGENTSH_NET_MCP_URL"], "mail", "auto", mail)  # it read nothing
    told = here.await_event("mcp_cross_server_blocked", lambda e: e["session_id"] == "flow")
    assert told["rule"] == "sandbox.mcp.cross_server.read_then_send"
    assert [c["tool_name"] for c in told["related_calls"]] == ["get_city"]


def test_what_a_model_called_through_the_proxy_is_not_sent_through_the_gateway_of_the_same_session(
    here: Running,
) -> None:
    env = session(here, "both")
    asked = {"model": "x", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    answer = httpx2.post(f"{env['ANTHROPIC_BASE_URL']}/v1/messages", json=asked, timeout=60)
    assert answer.json()["content"][0]["name"] == "mcp__weather__get_city"
    refused_mail(here, env, "auto")
    told = here.await_event("mcp_cross_server_blocked", lambda e: e["session_id"] == "both")
    assert (told["action"], [c["tool_call_id"] for c in told["related_calls"]]) == ("block", ["toolu_1"])
    call = here.await_event(
        "mcp_tool_called", lambda e: e["session_id"] == "both" and e["tool_name"] == "get_city"
    )
    assert (call["tool_call_id"], call["via"]) == ("toolu_1", "gateway")
