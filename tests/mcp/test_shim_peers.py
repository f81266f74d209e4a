"""Real clients and servers cannot tell that a shim is between them, but for what policy says; every call is in the audit trail."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, types
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError
from mcp_peers.everything import everything
from mcp_peers.overheard import HONEST, overheard
from running import Running, running

ROOT = Path(__file__).parent.parent.parent
SDK_SERVER = [sys.executable, str(ROOT / "tests" / "mcp_peers" / "sdk_stdio.py")]
QUIET = {"proxy": {"mode": "disabled"}, "network": {"mode": "off"}}


def policy(**mcp: Any) -> dict[str, Any]:
    servers = [{"id": name, "type": "stdio", "command": "declared"} for name in ("peer", "everything")]
    return {"sandbox": {"mcp": {"servers": servers, **mcp}}, **QUIET}


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A daemon that denies one tool."""
    with running(
        tmp_path_factory.mktemp("daemon"),
        policy(
            denied_tools=[{"server": "peer", "tool": "rm"}],
            output_inspection={"enabled": True, "on_detection": "block"},
        ),
    ) as it:
        yield it


@pytest.fixture(scope="module")
def official() -> list[str]:
    command, why = everything()
    if not command:
        print(why)
        pytest.skip(why)
    return command


class Scene:
    """What a client of the official SDK does through a shim."""

    def __init__(
        self, here: Running, server: list[str], server_id: str, tmp_path: Path, *options: str
    ) -> None:
        self.errlog = tmp_path / "stderr"
        env = {"PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "proxy")))}
        args = [
            "-m",
            "agentsh_net",
            "--socket",
            str(here.folder / "control.sock"),
            "shim",
            "--server",
            server_id,
        ]
        shell = f'exec "$0" "$@" 2>{self.errlog}'
        words = [sys.executable, *args, *options, "--", *server]
        self.parameters = StdioServerParameters(
            command="sh", args=["-c", shell, *words], env=env, cwd=tmp_path
        )

    def play(self, scene: Callable[[Client], Awaitable[None]], mode: Any = "auto", **callbacks: Any) -> None:
        async def main() -> None:
            with anyio.fail_after(60):
                async with Client(self.parameters, mode=mode, **callbacks) as client:
                    await scene(client)

        anyio.run(main)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_tools_are_listed_and_called_in_both_eras(here: Running, tmp_path: Path, mode: str) -> None:
    async def scene(client: Client) -> None:
        assert client.protocol_version == ("2026-07-28" if mode == "auto" else "2025-11-25")
        assert {t.name for t in (await client.list_tools()).tools} >= {"add", "rm", "ask"}
        assert (await client.call_tool("add", {"a": 40})).structured_content == {"result": 42}
        with pytest.raises(MCPError, match="blocked by policy") as caught:
            await client.call_tool("rm", {"path": f"/{mode}"})
        assert caught.value.error.code == -31090
        assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content == {"result": 2}

    front = Scene(here, SDK_SERVER, "peer", tmp_path)
    front.play(scene, mode)
    assert "REMOVED" not in front.errlog.read_text()
    blocked = here.await_event("mcp_tool_called", lambda e: e["input"] == {"path": f"/{mode}"})
    assert (blocked["action"], blocked["server_id"], blocked["via"]) == ("block", "peer", "shim")
    assert blocked["rule"] == "sandbox.mcp.denied_tools[0]"
    allowed = here.await_event("mcp_tool_called", lambda e: e["input"] == {"a": 40})
    assert (allowed["action"], allowed["tool_name"], allowed["uid"]) == ("allow", "add", os.getuid())
    assert allowed["tool_hash"].startswith("sha256:")


def test_the_listing_is_the_discovery_of_a_stdio_server(here: Running, tmp_path: Path) -> None:
    async def scene(client: Client) -> None:
        await client.list_tools()

    Scene(here, SDK_SERVER, "peer", tmp_path).play(scene)
    here.await_event("mcp_tool_seen", lambda e: e["server_id"] == "peer" and e["tool_name"] == "add")
    (row,) = [s for s in here.status()["servers"] if s["server_id"] == "peer"]
    assert row["tools"] >= 5
    assert (row["discovery"]["transport"], row["discovery"]["server_info"]["name"]) == ("stdio", "peer")


def test_progress_comes_through_in_order(here: Running, tmp_path: Path) -> None:
    async def scene(client: Client) -> None:
        seen: list[float] = []

        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            seen.append(progress)

        await client.call_tool("slow", {"steps": 5}, progress_callback=progressed)
        assert seen == [1, 2, 3, 4, 5]

    Scene(here, SDK_SERVER, "peer", tmp_path).play(scene, "legacy")


def test_a_cancelled_call_is_cancelled_at_the_server(here: Running, tmp_path: Path) -> None:
    front = Scene(here, SDK_SERVER, "peer", tmp_path)

    async def scene(client: Client) -> None:
        with anyio.move_on_after(0.5):
            await client.call_tool("hang", {})
        while "CANCELLED" not in front.errlog.read_text():
            await anyio.sleep(0.01)
        assert (await client.call_tool("add", {"a": 1})).structured_content == {"result": 3}

    front.play(scene, "legacy")


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_what_a_server_tells_by_itself_reaches_its_client_unless_it_is_poison(
    here: Running, tmp_path: Path, mode: str
) -> None:
    seen: list[str] = []
    callbacks, scene = overheard(seen)
    Scene(here, SDK_SERVER, "peer", tmp_path).play(scene, mode, **callbacks)
    assert seen == HONEST
    for method in ("notifications/message", "notifications/progress"):
        told = here.await_event("mcp_tool_result_inspected", lambda e, m=method: e["method"] == m)
        assert (told["action"], told["max_severity"], told["via"]) == ("block", "critical", "shim")


async def accept(context: Any, params: Any) -> types.ElicitResult:
    return types.ElicitResult(action="accept", content={"name": "x"})


async def sample(context: Any, params: Any) -> types.CreateMessageResult:
    return types.CreateMessageResult(
        role="assistant", content=types.TextContent(type="text", text="sampled!"), model="m"
    )


def text_of(result: Any) -> str:
    return "".join(block.text for block in result.content)


def test_elicitation_passes_in_both_eras_and_is_told_of(here: Running, tmp_path: Path) -> None:
    async def legacy(client: Client) -> None:
        assert text_of(await client.call_tool("ask", {})) == "accept"

    async def modern(client: Client) -> None:
        assert text_of(await client.call_tool("consult", {})) == "heard 1"

    Scene(here, SDK_SERVER, "peer", tmp_path).play(legacy, "legacy", elicitation_callback=accept)
    Scene(here, SDK_SERVER, "peer", tmp_path).play(modern, elicitation_callback=accept)
    event = here.await_event("mcp_elicitation_request", lambda e: "Who are you?" in e["detail"])
    assert (event["action"], event["server_id"]) == ("allow", "peer")


def test_blocked_elicitation_reaches_nobody_in_either_era(tmp_path: Path) -> None:
    reached: list[Any] = []

    async def never(context: Any, params: Any) -> types.ElicitResult:
        reached.append(params)
        return types.ElicitResult(action="accept", content={"name": "x"})

    async def legacy(client: Client) -> None:
        with pytest.raises(MCPError, match="elicitation blocked by policy"):  # as its server heard it
            await client.call_tool("ask", {})

    async def modern(client: Client) -> None:
        with pytest.raises(MCPError, match="elicitation blocked by policy"):
            await client.call_tool("consult", {})

    with running(tmp_path, policy(elicitation={"policy": "block"})) as here:
        Scene(here, SDK_SERVER, "peer", tmp_path).play(legacy, "legacy", elicitation_callback=never)
        Scene(here, SDK_SERVER, "peer", tmp_path).play(modern, elicitation_callback=never)
        assert here.await_event("mcp_elicitation_request")["action"] == "block"
    assert not reached


def test_denied_tools_are_left_out_of_the_list_where_asked(here: Running, tmp_path: Path) -> None:
    async def scene(client: Client) -> None:
        names = {t.name for t in (await client.list_tools()).tools}
        assert "add" in names and "rm" not in names

    Scene(here, SDK_SERVER, "peer", tmp_path, "--hide-denied").play(scene)


def test_the_rate_is_the_daemons(tmp_path: Path) -> None:
    async def scene(client: Client) -> None:
        for _ in range(3):
            await client.call_tool("add", {"a": 1})
        with pytest.raises(MCPError, match="over its rate"):
            await client.call_tool("add", {"a": 1})

    limits = {"enabled": True, "default_rpm": 1, "default_burst": 3}
    with running(tmp_path, policy(rate_limits=limits)) as here:
        Scene(here, SDK_SERVER, "peer", tmp_path).play(scene)


def test_a_new_policy_bites_in_the_middle_of_a_conversation(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:

        async def scene(client: Client) -> None:
            for _ in range(3):  # by now the verdict stands
                await client.call_tool("add", {"a": 1})
            here.write(policy(denied_tools=[{"server": "peer", "tool": "add"}]))
            assert here.client.call("reload")["changed"]
            with pytest.raises(MCPError, match="blocked by policy"):
                await client.call_tool("add", {"a": 2})

        Scene(here, SDK_SERVER, "peer", tmp_path).play(scene)
        assert here.await_event("mcp_tool_called", lambda e: e["input"] == {"a": 2})["action"] == "block"
        passed = [e for e in here.events("mcp_tool_called") if e["input"] == {"a": 1}]
        assert [e["action"] for e in passed] == ["allow"] * 3


def test_a_daemon_that_goes_and_comes_back_is_followed(tmp_path: Path) -> None:
    """While it is away calls follow its last word on fail_closed; when it is back they are judged again."""
    denied = policy(denied_tools=[{"server": "peer", "tool": "rm"}], fail_closed=True)
    back: list[Any] = []
    with running(tmp_path, denied) as here:
        front = Scene(here, SDK_SERVER, "peer", tmp_path)

        async def scene(client: Client) -> None:
            await client.list_tools()
            await client.call_tool("add", {"a": 1})
            await anyio.to_thread.run_sync(leave)
            with pytest.raises(MCPError, match="cannot be asked"):
                await client.call_tool("add", {"a": 2})
            await anyio.to_thread.run_sync(come_back)
            while True:
                try:
                    await client.call_tool("add", {"a": 3})
                except MCPError as error:
                    assert "cannot be asked" in str(error)  # noqa: PT017 - until it is found again
                    await anyio.sleep(0.05)
                else:
                    break
            with pytest.raises(MCPError, match="blocked by policy"):
                await client.call_tool("rm", {"path": "/x"})

        def leave() -> None:
            here.loop.call_soon_threadsafe(here.daemon.state.stop)
            while (here.folder / "control.sock").exists():
                pass

        def come_back() -> None:
            context = running(tmp_path, denied)
            back.append((context, context.__enter__()))

        try:
            front.play(scene)
            assert (
                back[0][1].await_event("mcp_tool_called", lambda e: e["input"] == {"path": "/x"})["action"]
                == "block"
            )
        finally:
            for context, _ in back:
                context.__exit__(None, None, None)


# The official reference server.


def test_the_reference_server_behaves_as_without_us(
    here: Running, official: list[str], tmp_path: Path
) -> None:
    async def scene(client: Client) -> None:
        listed = {t.name for t in (await client.list_tools()).tools}
        assert {"echo", "get-sum", "get-tiny-image", "trigger-sampling-request"} <= listed
        assert text_of(await client.call_tool("echo", {"message": "héllo"})) == "Echo: héllo"
        image = await client.call_tool("get-tiny-image", {})
        assert any(block.type == "image" for block in image.content)
        assert "sampled!" in text_of(await client.call_tool("trigger-sampling-request", {"prompt": "hi"}))
        assert "x" in text_of(await client.call_tool("trigger-elicitation-request", {}))
        assert (await client.list_resources()).resources
        assert (await client.list_prompts()).prompts

    front = Scene(here, official, "everything", tmp_path)
    front.play(scene, "legacy", sampling_callback=sample, elicitation_callback=accept)
    assert here.await_event("mcp_sampling_request")["server_id"] == "everything"
    assert here.await_event("mcp_tool_called", lambda e: e["tool_name"] == "echo")["input"] == {
        "message": "héllo"
    }


def test_many_calls_at_once_each_get_their_own_answer(
    here: Running, official: list[str], tmp_path: Path
) -> None:
    async def scene(client: Client) -> None:
        async def one(number: int) -> None:
            assert text_of(await client.call_tool("echo", {"message": str(number)})) == f"Echo: {number}"

        async with anyio.create_task_group() as group:
            for number in range(100):
                group.start_soon(one, number)

    Scene(here, official, "everything", tmp_path).play(scene, "legacy")
    numbers = {str(n) for n in range(100)}
    here.await_event("mcp_tool_called", lambda e: e["input"] == {"message": "99"})
    seen = [
        e["input"]["message"] for e in here.events("mcp_tool_called", limit=1000) if e["tool_name"] == "echo"
    ]
    assert sorted(m for m in seen if m in numbers) == sorted(numbers)


def test_both_eras_and_the_shim_see_the_same_definitions(
    here: Running, official: list[str], tmp_path: Path
) -> None:
    listings: list[Any] = []

    async def scene(client: Client) -> None:
        listings.append([t.model_dump() for t in (await client.list_tools()).tools])

    front = Scene(here, official, "everything", tmp_path)
    front.play(scene, "legacy")
    bare = Scene(here, official, "everything", tmp_path)
    bare.parameters = StdioServerParameters(command=official[0], args=official[1:])
    bare.play(scene, "legacy")
    assert listings[0] == listings[1]
