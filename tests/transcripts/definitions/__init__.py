"""What the official reference servers answered to tools/list: data of theirs (MIT), each file names package and version.

Recorded over stdio as revision 2025-06-18 with made-up credentials; nothing is changed but that `instructions` stands beside them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in HERE.glob("*.json"))


def load(name: str) -> dict[str, Any]:
    """Return `package`, `instructions` and `tools` of a server."""
    loaded: dict[str, Any] = json.loads((HERE / f"{name}.json").read_bytes())
    return loaded


def all_tools() -> list[tuple[str, dict[str, Any]]]:
    """Return every tool with its server's name."""
    return [(name, tool) for name in NAMES for tool in load(name)["tools"]]
