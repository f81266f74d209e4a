"""A head lets in who may ask and says which server is meant; everything else is told what is wrong with it."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from agentsh_proxy.gateway.admission import MAX_NAMED
from gateway_front import GatewayFront, answering, call, plain, play, play_plainly, same, snapshot
from mcp_peers.scripted import Scripted

from agentsh_net.core.snapshot import Snapshot


def test_a_host_that_is_not_the_gateways_is_refused_as_a_rebound_name() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        for host in ("evil.example", "evil.example:8485", "127.0.0.1.evil.example"):
            answer = await front.raw(
                f"POST /mcp/peer HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".encode()
            )
            assert answer.startswith(b"HTTP/1.1 421 ")
        assert server.seen == []
        told = [(e["status"], e["method"], e["path"]) for e in front.told("mcp_request_refused")]
        assert told == [(421, "POST", "/mcp/peer")] * 3

    play_plainly(scene)


@pytest.mark.parametrize(
    ("origin", "status"),
    [("https://evil.example", 403), ("null", 403), ("http://localhost:6274", 200), ("https://ok.corp", 200)],
)
def test_pages_of_other_origins_are_refused(origin: str, status: int) -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.post(call(), Origin=origin)
        assert answer.status == status
        if status == 200:
            assert answer.headers["access-control-allow-origin"] == origin
            assert "origin" not in server.seen[0].headers
            preflight = await front.ask("OPTIONS", Origin=origin)
            assert (preflight.status, preflight.headers["access-control-allow-methods"]) == (
                204,
                "GET, POST, DELETE",
            )

    play_plainly(scene, {"allowed_origins": ["https://ok.corp"]})


def schemes(**of: str) -> dict[str, Any]:
    """Return a gateway section in which servers ask for a credential of their own."""
    named = [
        {"id": server, "type": "apiKey", "in": where, "name": "key", "credential": f"{server}-secret"}
        for server, where in of.items()
    ]
    return {
        "security_schemes": named,
        "servers": {server: {"downstream_security": server} for server in of},
    }


OTHERS = [{"id": name, "type": "http", "url": "http://127.0.0.1:1/"} for name in ("a", "b", "c", "denied")]


def test_no_answer_names_a_server_but_those_that_the_client_may_use() -> None:
    async def scene(front: GatewayFront, server: Scripted) -> None:
        async def named(path: str = "/mcp/nope", status: int = 401, **headers: str) -> str:
            answer = await front.ask("POST", call(), path=path, **headers)
            assert answer.status == status
            what, _, names = str(answer.json["error"]["message"]).partition(
                "; servers that this client may use: "
            )
            assert ("'nope' is not declared" in what) == (path != "/elsewhere")
            return names

        assert await named() == "peer"
        assert await named(key="wrong") == "peer"
        assert await named(key="a-secret") == "peer, a"
        assert await named("/mcp/nope?key=b-secret") == "peer, b"
        assert await named("/elsewhere", 404, key="c-secret") == "peer, c"

    gateway = schemes(a="header", b="query", c="header")
    play(
        answering(plain),
        scene,
        gateway=gateway,
        others=OTHERS,
        denied_servers=["denied"],
        server_policy="denylist",
    )


def test_a_server_that_wants_a_credential_is_told_from_none_by_nobody_without_it() -> None:
    gateway = schemes(a="header", b="query")
    gateway["security_schemes"][1] = {"id": "b", "type": "http", "scheme": "bearer", "credential": "b-secret"}

    async def scene(front: GatewayFront, server: Scripted) -> None:
        async def refused(name: str, path: str = "", **headers: str) -> tuple[int, bytes, Any]:
            answer = await front.ask("POST", call(), path=f"{path}/mcp/{name}", **headers)
            return answer.status, answer.body.replace(f"'{name}'".encode(), b"?"), answer.headers

        there, nowhere = await refused("a"), await refused("x")
        assert there == nowhere and there[0] == 401
        assert await refused("b", key="a-secret") == await refused("x", key="a-secret")
        assert (await refused("a", "/s/made-up")) == await refused("x", "/s/made-up")
        everything = {"key": "a-secret", "Authorization": "Bearer b-secret"}
        assert (await refused("x", **everything))[0] == 404

    play(answering(plain), scene, gateway=gateway, others=OTHERS)


def test_of_many_servers_some_are_named() -> None:
    others = [{"id": f"s{n}", "type": "http", "url": "http://127.0.0.1:1/"} for n in range(MAX_NAMED)]

    async def scene(front: GatewayFront, server: Scripted) -> None:
        message = (await front.post(call(), server="nope")).json["error"]["message"]
        names = message.rpartition("use: ")[2].split(", ")
        assert len(names) == MAX_NAMED + 1 and (names[0], names[-1]) == ("peer", "...")

    play(answering(plain), scene, others=others)


def test_where_every_server_wants_a_credential_a_client_without_one_learns_no_name() -> None:
    async def scene(front: GatewayFront, server: Scripted) -> None:
        answer = await front.post(call(), server="nope")
        assert (answer.status, answer.json["error"]["message"].rpartition(": ")[2]) == (401, "none")
        await front.post(call(), key="guess", path="/mcp/peer?key=guess")
        told = [(e["status"], e["rule"], e["path"]) for e in front.told("mcp_request_refused")]
        assert told == [(401, "gateway.security_schemes", p) for p in ("/mcp/nope", "/mcp/peer")]
        assert "guess" not in str(front.events)

    play(answering(plain), scene, gateway=schemes(peer="header"))


def test_an_id_is_found_whatever_its_case() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        assert (await front.post(call(), server="PEER")).status == 200

    play_plainly(scene)


def test_methods_that_mcp_does_not_know_are_refused() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.ask("PUT", call())
        assert (answer.status, answer.headers["allow"]) == (405, "GET, POST, DELETE")
        assert server.seen == []
        assert [e["status"] for e in front.told("mcp_request_refused")] == [405]

    play_plainly(scene)


@pytest.mark.parametrize("path", ["/", "/healthz"])
def test_who_asks_whether_it_lives_is_told_so_and_nothing_else(path: str) -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        answer = await front.ask("GET", path=path)
        assert (answer.status, answer.json) == (200, {"name": "agentsh-net", "status": "ok"})
        assert (server.seen, front.events) == ([], [])

    play_plainly(scene, schemes(peer="header"))


def test_each_request_of_a_connection_is_held_against_its_own_head() -> None:
    async def scene(front: GatewayFront, server: Scripted, peer: Any) -> None:
        front.follow(snapshot([peer, peer | {"id": "other"}], denied_servers=[{"id": "other"}]))
        body = json.dumps(call()).encode()
        answers = await front.raw(
            b"".join(
                f"POST /mcp/{server_id} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                f"Connection: {then}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
                + body
                for server_id, then in (("peer", "keep-alive"), ("other", "close"))
            )
        )
        assert answers.count(b'"result"') == answers.count(b"server other is denied by ") == 1
        assert len(server.seen) == 1
        assert [e["action"] for e in front.told("mcp_tool_called")] == ["allow", "block"]

    play_plainly(scene)


def test_a_token_in_the_path_names_the_session_and_an_unknown_one_is_refused() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        front.gateway.sessions = {sha256(b"tok").hexdigest(): "agent-7"}
        assert (await front.ask("POST", call(), path="/s/tok/mcp/peer")).status == 200
        assert front.told("mcp_tool_called")[0]["session_id"] == "agent-7"
        assert (await front.ask("POST", call(), path="/s/other/mcp/peer")).status == 403
        assert [e["path"] for e in front.told("mcp_request_refused")] == ["/s/[redacted]/mcp/peer"]

    play_plainly(scene)


def test_a_head_that_comes_again_is_held_against_what_is_in_force_by_then() -> None:
    async def scene(front: GatewayFront, server: Scripted, peer: dict[str, Any]) -> None:
        key = {"id": "k", "type": "apiKey", "in": "header", "name": "X-Key", "credential": "one"}

        def secured(credential: str) -> Snapshot:
            scheme = key | {"credential": credential}
            return snapshot(
                [peer],
                gateway={"security_schemes": [scheme], "servers": {"peer": {"downstream_security": "k"}}},
            )

        def revoke() -> None:
            front.gateway.sessions = {}

        denied = await same(front, lambda: front.follow(snapshot([peer], denied_servers=["peer"])))
        front.follow(secured("one"))
        rotated = await same(front, lambda: front.follow(secured("two")), "/mcp/peer", "X-Key: one")
        front.follow(snapshot([peer]))
        front.gateway.sessions = {sha256(b"token").hexdigest(): "agent"}
        ended = await same(front, revoke, "/s/token/mcp/peer")
        gone = await same(front, lambda: front.follow(snapshot([])))
        assert [[a[:3] for a in answers] for answers in (denied, rotated, ended, gone)] == [
            [b"200", b"200"], [b"200", b"401"], [b"200", b"403"], [b"200", b"404"],
        ]  # fmt: skip
        assert b"is denied by" in denied[1]
        assert len(server.seen) == 4, "what was refused did not reach the server"

    play_plainly(scene)


def test_a_call_is_of_the_session_in_which_its_clients_socket_was_made_whatever_token_it_shows() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        front.gateway.sessions = {sha256(b"tok").hexdigest(): "other"}
        front.charges.here = "mine"
        for path in ("/mcp/peer", "/s/tok/mcp/peer"):
            assert (await front.ask("POST", call(), path=path)).status == 200
        assert [event["session_id"] for event in front.told("mcp_tool_called")] == ["mine", "mine"]
        assert front.charges.contradictions == [("mine", "other")]

    play_plainly(scene)


def test_a_connection_of_which_nobody_says_whose_it_is_is_refused_before_it_is_read() -> None:
    async def scene(front: GatewayFront, server: Scripted, _: Any) -> None:
        front.charges.here = None
        assert (await front.raw(b"")).startswith(b"HTTP/1.1 503 ")
        assert [e["status"] for e in front.told("mcp_request_refused")] == [503]
        assert server.seen == []

    play_plainly(scene)
