"""What applications on LangChain and openai-agents are handed of each case: one JSON line a case and client. `sdks.py` starts it.

It runs in a virtual environment of its own, without this project.
"""

from __future__ import annotations

import asyncio
import json
import sys
import warnings
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import agents
from agents import (
    Agent,
    FunctionTool,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    StopAtTools,
)
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from openai import AsyncOpenAI

warnings.simplefilter("ignore")
agents.set_tracing_disabled(disabled=True)
TOLD = json.loads(Path(sys.argv[1]).read_text())
Calls = list[list[Any]]


async def langchain(model: Any, whole: bool, calls: Calls) -> None:
    if whole:
        message = await model.ainvoke("x")
    else:
        message = None
        try:
            async for chunk in model.astream("x"):
                message = chunk if message is None else message + chunk
        finally:
            if message is not None:  # an application may run what it has
                calls += [[call["name"], call["args"]] for call in message.tool_calls]
        return
    calls += [[call["name"], call["args"]] for call in message.tool_calls]


async def anthropic(url: str, whole: bool, calls: Calls) -> None:
    await langchain(ChatAnthropic(model="m", api_key="k", base_url=url, max_retries=0), whole, calls)


async def chat(url: str, whole: bool, calls: Calls) -> None:
    await langchain(ChatOpenAI(model="m", api_key="k", base_url=url, max_retries=0), whole, calls)


async def responses(url: str, whole: bool, calls: Calls) -> None:
    model = ChatOpenAI(model="m", api_key="k", base_url=url, max_retries=0, use_responses_api=True)
    await langchain(model, whole, calls)


def tools(calls: Calls) -> list[FunctionTool]:
    def made(name: str) -> FunctionTool:
        async def run(_: Any, text: str) -> str:
            calls.append([name, json.loads(text or "{}")])
            return "done"

        schema = {"type": "object", "properties": {}, "additionalProperties": True}
        return FunctionTool(name, "x", schema, run, strict_json_schema=False)

    return [made(name) for name in TOLD["tools"]]


async def openai_agents(model: Any, whole: bool, calls: Calls) -> None:
    agent = Agent(
        name="a", model=model, tools=tools(calls), model_settings=ModelSettings(),
        tool_use_behavior=StopAtTools(stop_at_tool_names=TOLD["tools"]),
    )  # fmt: skip
    if whole:
        await Runner.run(agent, "x", max_turns=1)
        return
    result = Runner.run_streamed(agent, "x", max_turns=1)
    async for _ in result.stream_events():
        pass


async def agents_chat(url: str, whole: bool, calls: Calls) -> None:
    async with AsyncOpenAI(api_key="k", base_url=url, max_retries=0) as client:
        await openai_agents(OpenAIChatCompletionsModel("m", client), whole, calls)


async def agents_responses(url: str, whole: bool, calls: Calls) -> None:
    async with AsyncOpenAI(api_key="k", base_url=url, max_retries=0) as client:
        await openai_agents(OpenAIResponsesModel("m", client), whole, calls)


CLIENTS: list[tuple[str, str, str, Callable[[str, bool, Calls], Awaitable[None]]]] = [
    ("messages", "langchain-anthropic", "stream, invoke", anthropic),
    ("chat", "langchain-openai", "chat", chat),
    ("responses", "langchain-openai", "responses", responses),
    ("chat", "openai-agents", "chat, executes", agents_chat),
    ("responses", "openai-agents", "responses, executes", agents_responses),
]


async def main() -> None:
    for case in TOLD["cases"]:
        for wire, package, how, ask in CLIENTS:
            if wire != case["wire"]:
                continue
            calls: Calls = []
            error = ""
            try:
                async with asyncio.timeout(10):
                    await ask(f"{TOLD['base']}/{case['id']}/{case['which']}", case["whole"], calls)
            except Exception as problem:
                error = repr(problem)[:200]
            told = {
                "id": case["id"],
                "which": case["which"],
                "client": f"{package} ({how})",
                "version": version(package),
            }
            print(json.dumps(told | {"calls": calls, "error": error}, default=str), flush=True)


asyncio.run(main())
