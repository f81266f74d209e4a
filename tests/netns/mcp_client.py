"""An MCP client on the official SDK, run as a program: `mcp_client.py URL` lists and calls, and says in JSON what came of it."""

from __future__ import annotations

import asyncio
import errno
import json
import sys

from mcp import Client


async def converse(url: str) -> dict[str, object]:
    async with Client(url) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool("add", {"a": 2, "b": 3})
        return {"tools": tools, "result": result.content[0].text}


def errors(error: BaseException | None) -> list[str]:
    """Return the operating system's errors behind an exception, in groups, causes and contexts."""
    if error is None:
        return []
    found = (
        [errno.errorcode[error.errno]]
        if isinstance(error, OSError) and error.errno in errno.errorcode
        else []
    )
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    for each in (*inner, error.__cause__, error.__context__):
        found += errors(each)
    return found


if __name__ == "__main__":
    try:
        print(json.dumps(asyncio.run(converse(sys.argv[1]))))
    except Exception as error:
        print(json.dumps({"errors": sorted(set(errors(error))), "says": str(error)}))
