"""The official server-everything of npm, installed once into a cache of the tests; or why it cannot be had."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

PACKAGE = "@modelcontextprotocol/server-everything"
VERSION = "2026.8.31"
PATIENCE = 200  # seconds, which a test has to spare


@cache
def everything() -> tuple[list[str], str]:
    """Return the command of the server on stdio, and why there is none."""
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        return [], "npm and node are not installed"
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentsh-net-tests"
    folder = base / f"server-everything-{VERSION}"
    program = folder / "node_modules" / PACKAGE / "dist" / "index.js"
    if not program.exists():
        folder.mkdir(parents=True, exist_ok=True)
        asked = [npm, "install", "--prefix", str(folder), "--no-audit", "--no-fund", f"{PACKAGE}@{VERSION}"]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            return [], f"npm did not install {PACKAGE}@{VERSION} within {PATIENCE} s"
        if done.returncode or not program.exists():
            return [], f"npm cannot install {PACKAGE}@{VERSION}: {done.stderr.strip()[-300:]}"
    return [node, str(program), "stdio"], ""
