"""Real agents get exactly the calls that policy allows: `./dev clients agents` runs them (see `run`), a row each.

Each turn goes through `agentsh-net run`, the program with a policy file that its users have, without the kernel's layers.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from loopback.upstream import Upstream
from provider import DONE, Provider

HERE = Path(__file__).parent
SECONDS = 120  # of one agent's run; a turn takes five on an idle machine
DENIED, ALLOWED = "delete_files", "read_file"


@asynccontextmanager
async def product(home: Path, upstream: int, mode: str, *, websockets: bool):
    """Run the daemon; yield the proxy's URL, and what asks it for its audit."""
    at = f"http://127.0.0.1:{upstream}"
    policy = {
        "version": 1,
        "sandbox": {
            "mcp": {
                "servers": [{"id": "files", "type": "stdio", "command": "files"}],
                "denied_tools": [{"server": "files", "tool": "delete_*"}],
                "block_mode": mode,
            }
        },
        "network": {"mode": "off"},
        "proxy": {
            "port": 0,
            "providers": {
                "anthropic": {"base_url": at}, "openai": {"base_url": f"{at}/v1"}, "gemini": {"base_url": at},
            },
            **({"websockets": "inspect"} if websockets else {}),
        },
        "store": {"path": str(home / "events.db")},
        "control": {"socket": str(home / "control.sock")},
    }  # fmt: skip
    (home / "policy.yaml").write_text(yaml.safe_dump(policy))
    ready = home / "ready"
    with (home / "log").open("wb") as log:
        daemon = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "agentsh_net", "run", "--config", home / "policy.yaml", "--ready-file", ready,
            stdout=log, stderr=log,
        )  # fmt: skip

    async def calls() -> list[dict[str, Any]]:
        asked = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "agentsh_net", "mcp", "calls", "--json",
            env=os.environ | {"AGENTSH_NET_SOCKET": str(home / "control.sock")}, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        return json.loads((await asked.communicate())[0])

    try:
        while not ready.exists():
            if daemon.returncode is not None:
                raise RuntimeError((home / "log").read_text())
            await asyncio.sleep(0.05)
        yield json.loads(ready.read_text())["proxy"], calls
    finally:
        daemon.terminate()
        await daemon.wait()


# ---- the agents: command, environment, by the proxy's URL, a home, and the command of the MCP server ----

Start = Callable[[str, Path, list[str]], tuple[list[str], dict[str, str]]]


@dataclass(frozen=True)
class Agent:
    """One agent on one wire. `goes_on` says whether a steered call lets it go on (else it gets text)."""

    name: str
    package: str
    wire: str
    start: Start
    goes_on: bool = False
    websocket: bool = False


def claude_code(modules: Path) -> Start:
    binary = next(modules.glob("@anthropic-ai/claude-code-linux*/claude"))

    def start(base: str, home: Path, server: list[str]) -> tuple[list[str], dict[str, str]]:
        servers = {"mcpServers": {"files": {"command": server[0], "args": server[1:]}}}
        command = [
            str(binary), "-p", "go", "--strict-mcp-config", "--mcp-config", json.dumps(servers),
            "--allowedTools", f"mcp__files__{DENIED},mcp__files__{ALLOWED}",
        ]  # fmt: skip
        return command, {
            "ANTHROPIC_API_KEY": "sk-ant-dummy", "ANTHROPIC_BASE_URL": f"{base}/anthropic",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1",
        }  # fmt: skip

    return start


def codex(modules: Path, *, websocket: bool = False) -> Start:
    binary = next(modules.glob("@openai/codex-linux*/vendor/*/bin/codex"))

    def start(base: str, home: Path, server: list[str]) -> tuple[list[str], dict[str, str]]:
        (home / "config.toml").write_text(
            f'model = "gpt-5"\nmodel_provider = "scripted"\n[model_providers.scripted]\nname = "scripted"\n'
            f'base_url = "{base}/openai/v1"\nenv_key = "DUMMY_KEY"\nwire_api = "responses"\n'
            f"supports_websockets = {str(websocket).lower()}\n"
            f"[mcp_servers.files]\ncommand = {json.dumps(server[0])}\nargs = {json.dumps(server[1:])}\n"
        )
        command = [
            str(binary),
            "exec",
            "--skip-git-repo-check",
            "--dangerously-bypass-approvals-and-sandbox",
            "go",
        ]
        return command, {"CODEX_HOME": str(home), "DUMMY_KEY": "k"}

    return start


def opencode(modules: Path, sdk: str, path: str) -> Start:
    binary = next(modules.glob("opencode-linux-x64/bin/opencode"))

    def start(base: str, home: Path, server: list[str]) -> tuple[list[str], dict[str, str]]:
        model = {"name": "m", "tool_call": True, "limit": {"context": 100000, "output": 1000}}
        settings = {
            "provider": {
                "scripted": {
                    "npm": sdk, "options": {"baseURL": f"{base}{path}", "apiKey": "k"}, "models": {"gpt-5": model},
                }
            },
            "mcp": {"files": {"type": "local", "command": server, "enabled": True}},
            "permission": {"*": "allow"}, "autoupdate": False, "share": "disabled",
        }  # fmt: skip
        (home / "opencode.json").write_text(json.dumps(settings))
        command = [str(binary), "run", "-m", "scripted/gpt-5", "go"]
        return command, {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"}

    return start


def gemini_cli(modules: Path) -> Start:
    bundle = modules / "@google/gemini-cli"
    script = bundle / json.loads((bundle / "package.json").read_text())["bin"]["gemini"]

    def start(base: str, home: Path, server: list[str]) -> tuple[list[str], dict[str, str]]:
        settings = {
            "mcpServers": {"files": {"command": server[0], "args": server[1:], "trust": True}},
            "security": {"auth": {"selectedType": "gemini-api-key"}},
            "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
            "general": {"disableAutoUpdate": True},
        }  # fmt: skip
        (home / ".gemini").mkdir()
        (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
        command = ["node", str(script), "-p", "go", "--yolo", "-m", "gemini-2.5-flash", "--skip-trust"]
        return command, {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": f"{base}/gemini", "NO_BROWSER": "1"}

    return start


def agents(modules: Path) -> list[Agent]:
    return [
        Agent("claude-code", "@anthropic-ai/claude-code", "messages", claude_code(modules), goes_on=True),
        Agent("codex", "@openai/codex", "responses", codex(modules), goes_on=True),
        Agent(
            "codex",
            "@openai/codex",
            "websocket",
            codex(modules, websocket=True),
            goes_on=True,
            websocket=True,
        ),
        Agent(
            "opencode", "opencode-ai", "chat", opencode(modules, "@ai-sdk/openai-compatible", "/openai/v1")
        ),
        Agent("opencode", "opencode-ai", "messages", opencode(modules, "@ai-sdk/anthropic", "/anthropic/v1")),
        Agent("opencode", "opencode-ai", "responses", opencode(modules, "@ai-sdk/openai", "/openai/v1")),
        Agent("gemini-cli", "@google/gemini-cli", "gemini", gemini_cli(modules)),
    ]


# ---- one turn ----


@dataclass(frozen=True)
class Turn:
    """What came of a turn."""

    ran: str  # what the server executed
    requests: int
    called: str  # the name on the wire
    wrong: tuple[str, ...]


async def turn(agent: Agent, mode: str, tool: str, scratch: Path) -> Turn:
    home = scratch / f"{agent.name}-{agent.wire}-{mode}-{tool}"
    home.mkdir()
    ran = home / "ran"
    ran.touch()
    provider = Provider(tool)
    async with (
        Upstream(provider) as upstream,
        product(home, upstream.port, mode, websockets=agent.websocket) as (base, calls),
    ):
        server = [sys.executable, str(HERE / "files_server.py"), str(ran)]
        command, environment = agent.start(base, home, server)
        process = await asyncio.create_subprocess_exec(
            *command, env={"PATH": os.environ["PATH"], "HOME": str(home), **environment}, cwd=home,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        try:
            async with asyncio.timeout(SECONDS):
                out, err = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            return Turn(
                ran.read_text(), provider.requests, provider.called, (f"did not end within {SECONDS} s",)
            )
        actions = {call["action"] for call in await calls()}
    said = (out + err).decode("utf-8", "replace")
    wrong = list(_wrong(agent, mode, tool, ran.read_text(), provider, said, actions))
    if process.returncode:
        wrong.append(f"exit {process.returncode}: {said[-600:]!r}")
    return Turn(ran.read_text(), provider.requests, provider.called, tuple(wrong))


def _wrong(
    agent: Agent, mode: str, tool: str, ran: str, provider: Provider, said: str, actions: set[str]
) -> Iterator[str]:
    if ran != ("" if tool == DENIED else f"{ALLOWED} /x\n"):
        yield f"the server ran {ran!r}, and the agent said {str(provider.answers)[:300]}"
    if actions != {"block" if tool == DENIED else "allow"}:
        yield f"the audit says {actions}"
    goes_on = tool == ALLOWED or (mode == "steer" and agent.goes_on)
    if goes_on and (DONE not in said or not provider.answers):
        yield f"the turn did not go on: {said[-300:]!r}"
    if not goes_on and ("blocked by policy" not in said or provider.answers):
        yield f"the turn did not end with the notice: {said[-300:]!r}"
    if not goes_on and provider.requests != 1:
        yield f"{provider.requests} requests for a turn that ends"


async def main(modules: Path, scratch: Path, names: list[str]) -> int:
    rows, failed = [], 0
    for agent in agents(modules):
        if names and agent.name not in names:
            continue
        version = json.loads((modules / agent.package / "package.json").read_text())["version"]
        for mode in ("replace", "steer"):
            denied = await turn(agent, mode, DENIED, scratch)
            allowed = await turn(agent, mode, ALLOWED, scratch)
            wrong = [
                f"{tool}: {text}"
                for tool, one in ((DENIED, denied), (ALLOWED, allowed))
                for text in one.wrong
            ]
            failed += bool(wrong)
            rows.append(
                (
                    agent.name, version, agent.wire, denied.called, mode, "YES" if denied.ran else "no",
                    "yes" if allowed.ran else "NO", f"{denied.requests}", f"{allowed.requests}", "; ".join(wrong) or "ok",
                )
            )  # fmt: skip
            print(
                f"clients: {agent.name} ({agent.wire}), {mode}: {rows[-1][-1]}", file=sys.stderr, flush=True
            )
    head = (
        "client", "version", "wire", "called", "block_mode", "denied ran", "allowed ran", "requests (denied)",
        "requests (allowed)", "outcome",
    )  # fmt: skip
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])))
