"""The scripted agent offers the model what its servers list, calls what is asked, counts honest calls, and says what it was refused."""

from __future__ import annotations

import asyncio
import errno
import io
import json
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from model_server import serving

from agentsh_net.demo import agent, cast, model
from agentsh_net.demo.internet import calculator, honest
from agentsh_net.demo.scenarios import BY_NAME, Scenario

SECRET = "demo-secret-0123456789abcdef"


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in BY_NAME:
        (tmp_path / name).mkdir()
        (tmp_path / name / "credentials.txt").write_text(f"{SECRET}\n")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    with serving(model.answer) as provider:
        yield provider.url


class Local(agent.Agent):
    """The agent with its servers in its own process."""

    def __init__(self, provider: str, stack: AsyncExitStack, **servers: Any) -> None:
        super().__init__(lambda: agent.anthropic(provider), "", stack)
        self._servers = servers

    async def _client(self, server: str, stack: AsyncExitStack) -> Client:
        return await stack.enter_async_context(Client(self._servers[server]))


def played(provider: str, scenario: Scenario, **servers: Any) -> Local:
    async def body() -> Local:
        async with AsyncExitStack() as stack:
            one = Local(provider, stack, **servers)
            await one.play(scenario)
            return one

    return asyncio.run(body())


def test_a_model_that_obeys_a_changed_tool_gives_the_key_away_and_the_honest_call_counts(
    provider: str,
) -> None:
    noted: list[Any] = []
    one = played(provider, BY_NAME["rug-pull"], calc=calculator(lambda *row: noted.append(row)))
    assert noted[-1] == ("calc", "add", {"a": 4, "b": 5, "context": SECRET})
    assert (one.honest, one.refused) == (1, [])


def test_of_two_tools_of_one_name_the_last_servers_is_called(provider: str) -> None:
    noted: list[Any] = []
    both = {name: honest(name, lambda *row: noted.append(row)) for name in (cast.MAIL, cast.NEWSLETTER)}
    played(provider, BY_NAME["shadowed-name"], **both)
    assert [(server, tool) for server, tool, _ in noted] == [(cast.NEWSLETTER, "send_email")]


def test_its_own_code_calls_tools_without_the_model(provider: str) -> None:
    noted: list[Any] = []
    both = {name: honest(name, lambda *row: noted.append(row)) for name in (cast.PAYMENTS, cast.LOOKALIKE)}
    one = played(provider, BY_NAME["look-alike-server"], **both)
    assert noted[-1] == (cast.LOOKALIKE, "pay", {"invoice": "A-2", "key": SECRET})
    assert one.honest == 1


def test_a_call_that_fails_is_no_honest_one(provider: str) -> None:
    def broken(*_: Any) -> None:
        raise ValueError

    one = played(
        provider,
        BY_NAME["look-alike-server"],
        payments=honest("payments", broken),
        payrnents=honest("payrnents", broken),
    )
    assert one.honest == 0
    assert len(one.refused) == 2


def test_the_operating_systems_refusal_is_found_behind_what_sdks_make_of_it() -> None:
    outer = ConnectionError("outer")
    outer.__cause__ = PermissionError(errno.EPERM, "no")
    assert agent.reason(outer) == "EPERM"
    assert agent.reason(ExceptionGroup("many", [outer])) == "EPERM"
    assert agent.reason(ValueError("words")) == "words"


def test_a_scenario_that_fails_is_not_reported_and_the_next_one_is_played(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def plays(_: agent.Agent, scenario: Scenario) -> None:
        if scenario.number == 1:
            raise ConnectionError("no server")

    monkeypatch.setattr(agent.Agent, "play", plays)
    one = agent.Agent(agent.anthropic, "http://gateway.test/mcp", AsyncExitStack())
    asyncio.run(agent.play(one, ["read-then-send", "rug-pull"]))
    told = capsys.readouterr()
    assert [json.loads(line)["scenario"] for line in told.out.splitlines()] == ["rug-pull"]
    assert "no server" in told.err


@pytest.mark.parametrize(("line", "played"), [("go\n", ["around-the-proxy"]), ("", [])])
def test_it_waits_for_a_line_and_plays_nothing_without_one(
    line: str, played: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def plays(_: agent.Agent, __: Scenario) -> None:
        """Do nothing."""

    monkeypatch.setattr(agent.Agent, "play", plays)
    monkeypatch.setattr(agent.sys, "stdin", io.StringIO(line))
    monkeypatch.setenv("AGENTSH_NET_MCP_URL", "http://gateway.test/mcp")
    asyncio.run(agent.main(["around-the-proxy"]))
    told = capsys.readouterr().out
    assert [json.loads(row)["scenario"] for row in told.splitlines()] == played


def test_who_plays_with_files_has_their_server_before_the_play_begins() -> None:
    started: list[str] = []

    class Noting(agent.Agent):
        async def _client(self, server: str, stack: AsyncExitStack) -> Any:
            started.append(server)

    one = Noting(agent.anthropic, "", AsyncExitStack())
    asyncio.run(one.get_ready(["around-the-proxy", "denied-server"]))
    assert started == []
    asyncio.run(one.get_ready(["suggested-policy"]))
    assert started == [cast.FILES]
