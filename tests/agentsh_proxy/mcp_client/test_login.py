"""Who wants a login is told by its answer to a request without a credential; who cannot be asked, or answers, wants none."""

from __future__ import annotations

import pytest
from agentsh_proxy.mcp_client import login
from agentsh_proxy.mcp_client.login import logins
from mcp_peers.roles import SseServer, declared, legacy
from mcp_peers.scripted import Handler, Seen, Wire, run, serving

from agentsh_net.core.model import Server, Transport


async def unauthorized(_: Seen, wire: Wire) -> None:
    await wire.answer(401, WWW_Authenticate='Bearer resource_metadata="https://x.test/m"')


async def silence(_: Seen, __: Wire) -> None:
    """Never answer."""


@pytest.mark.parametrize(
    ("handler", "transport", "wants"),
    [
        (unauthorized, Transport.HTTP, True),
        (unauthorized, Transport.SSE, True),
        (legacy(), Transport.HTTP, False),
        (SseServer(), Transport.SSE, False),
        (silence, Transport.HTTP, False),
    ],
)
def test_a_401_is_a_login(
    handler: Handler, transport: Transport, wants: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "PATIENCE", 0.5)

    async def main() -> None:
        async with serving(handler) as server:
            one = declared(server, "/mcp", transport, headers={"Authorization": "Bearer s3cret"})
            assert await logins([one]) == (frozenset([one.id]) if wants else frozenset())
            assert all("authorization" not in seen.headers for seen in server.seen), "no credential is sent"

    run(main())


def test_a_server_that_is_down_wants_none_and_keeps_nobody_from_being_asked() -> None:
    async def main() -> None:
        async with serving(unauthorized) as server:
            down = Server("down", Transport.HTTP, url="http://127.0.0.1:9/mcp")
            assert await logins([down, declared(server)]) == frozenset([declared(server).id])
        assert await logins([]) == frozenset()

    run(main())
