"""A stdio MCP server of two tools that appends each call it runs to the file of its first argument.

Of the standard library alone, so that it is there before an agent's first turn.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
# As the policy of tests/loopback knows them: another description would be a tool changed on its way.
SAID = {"delete_files": "Deletes files.", "read_file": "Reads a file."}
TOOLS = [{"name": name, "description": text, "inputSchema": SCHEMA} for name, text in SAID.items()]


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request."""
    match method:
        case "initialize":
            version = params.get("protocolVersion", "2025-06-18")
            server = {"name": "files", "version": "1"}
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": server}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            with Path(sys.argv[1]).open("a") as file:
                file.write(f"{params['name']} {params['arguments']['path']}\n")
            return {"content": [{"type": "text", "text": "done"}]}
        case _:
            return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
