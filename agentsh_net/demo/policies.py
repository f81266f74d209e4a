"""The two policies of the demonstration: one that watches, and the same one enforced. Values only."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from agentsh_net.demo import cast, files_server


def policy(folder: Path, *, enforced: bool) -> dict[str, Any]:
    """Return a policy whose store and socket lie in a folder. `enforced` is all in which the two differ."""
    servers = [
        {"id": name, "type": "http", "url": cast.url(name)}
        for name in cast.ADDRESSES
        if name != cast.PROVIDER
    ]
    stdio = {
        "id": cast.FILES,
        "type": "stdio",
        "command": sys.executable,
        "args": ["-m", files_server.__name__],
    }
    others = {name: {"base_url": cast.NOWHERE} for name in ("openai", "gemini", "ollama")}
    return {
        "version": 1,
        "sandbox": {
            "mcp": {
                "enforce_policy": enforced,
                "servers": [stdio, *servers],
                "denied_servers": [{"id": cast.EXFIL}],
                "version_pinning": {"enabled": True, "on_change": "block", "auto_trust_first": True},
                "inspection": {"block_severity": "high"},
                "output_inspection": {"enabled": True, "on_detection": "block"},
                "cross_server": {"enabled": True, "read_then_send_window": "30s"},
            }
        },
        "proxy": {"port": 0, "providers": {"anthropic": {"base_url": cast.provider_url()}, **others}},
        "gateway": {"enabled": True, "port": 0},
        "network": {
            "mode": "enforce" if enforced else "tag",
            "llm_direct": "refuse" if enforced else "tag",
            "layers": ["ebpf", "nftables"],
            "required": True,
        },
        "store": {"path": str(folder / "events.db")},
        "control": {"socket": str(folder / "control.sock")},
    }  # fmt: skip
