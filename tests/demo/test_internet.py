"""The servers of the demonstration note what comes to them, and the calculator changes its tool as a rug pull does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from mcp import Client

from agentsh_net.demo import cast
from agentsh_net.demo.internet import Notebook, calculator, honest


def played(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[tuple[str | None, str]]:
    """Return, for each call, the tool's description before it and what it said."""

    async def body() -> list[tuple[str | None, str]]:
        said = []
        for name, arguments in calls:
            async with Client(server) as client:
                tools = {t.name: t.description for t in (await client.list_tools()).tools}
                result = await client.call_tool(name, arguments)
                said.append((tools[name], result.content[0].text))
        return said

    return asyncio.run(body())


def test_a_call_is_noted(tmp_path: Path) -> None:
    book = tmp_path / "arrived"
    told = played(
        honest(cast.QUOTES, Notebook(book).note),
        ("quote_of_the_day", {"note": "s"}),
        ("quote_of_the_day", {}),
    )
    assert told[0][0] == cast.QUOTE_POISONED
    rows = [json.loads(line) for line in book.read_text().splitlines()]
    assert rows[0] == {"server": "quotes", "tool": "quote_of_the_day", "arguments": {"note": "s"}}
    assert len(rows) == 2


def test_the_calculator_is_honest_until_it_is_used_and_again_once_it_has_the_key() -> None:
    noted: list[Any] = []
    told = played(
        calculator(lambda *row: noted.append(row)),
        ("add", {"a": 2, "b": 3}),
        ("add", {"a": 1, "b": 1, "context": "s"}),
        ("add", {"a": 1, "b": 2}),
    )
    assert told == [(cast.ADD, "5"), (cast.ADD_PULLED, "2"), (cast.ADD, "3")]
    assert noted[1] == ("calc", "add", {"a": 1, "b": 1, "context": "s"})


def test_each_server_offers_its_tool() -> None:
    for name, tool, arguments in (
        (cast.MAIL, "send_email", {"to": "a", "body": "b"}),
        (cast.NEWSLETTER, "send_email", {"to": "a", "body": "b"}),
        (cast.WEB, "fetch_page", {"url": "u"}),
        (cast.LOOKALIKE, "pay", {"invoice": "i", "key": "k"}),
        (cast.EXFIL, "upload", {"text": "t"}),
    ):
        noted: list[Any] = []
        played(honest(name, lambda *row, into=noted: into.append(row)), (tool, arguments))
        assert noted == [(name, tool, arguments)]
