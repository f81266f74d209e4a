"""Other MCP proxies, installed where they are missing, and how each is started in front of a server of either kind.

Where Streamable HTTP is on both sides only fastmcp is one proxy; two of the others can be chained to themselves over stdio.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "agentsh-net-tests" / "mcp-proxies"
MCP_PROXY = str(CACHE / "venv" / "bin" / "mcp-proxy")
FASTMCP = str(CACHE / "fastmcp" / "bin" / "fastmcp")
NPM_PROXY = str(CACHE / "node_modules" / ".bin" / "mcp-proxy")
SUPERGATEWAY = str(CACHE / "node_modules" / ".bin" / "supergateway")

PAIRS = ("PyPI mcp-proxy, twice", "supergateway, twice")

Proxy = tuple[str, Callable[[int], list[str]]]  # its name, and its command for a port, where it serves /mcp


def before_stdio(server: list[str]) -> Iterator[Proxy]:
    """Yield the proxies that can be had here, each in front of a stdio server."""
    _install()
    yield from _present(
        (MCP_PROXY, "PyPI mcp-proxy", lambda port: [MCP_PROXY, "--port", str(port), "--", *server]),
        (NPM_PROXY, "npm mcp-proxy", lambda port: [NPM_PROXY, "--port", str(port), "--", *server]),
        (SUPERGATEWAY, "supergateway", lambda port: _supergateway(server, port)),
    )


def before_http(url: str) -> Iterator[Proxy]:
    """Yield the proxies that can be had here, each in front of a Streamable HTTP server."""
    _install()
    client = [MCP_PROXY, "--transport", "streamablehttp", url]
    chained = [SUPERGATEWAY, "--streamableHttp", url, "--logLevel", "none"]
    yield from _present(
        (FASTMCP, "fastmcp", lambda port: [FASTMCP, "run", url, "-t", "http", "-p", str(port), "--no-banner"]),
        (MCP_PROXY, PAIRS[0], lambda port: [MCP_PROXY, "--port", str(port), "--", *client]),
        (SUPERGATEWAY, PAIRS[1], lambda port: _supergateway(chained, port)),
    )  # fmt: skip


def _supergateway(server: list[str], port: int) -> list[str]:
    front = [SUPERGATEWAY, "--stdio", shlex.join(server), "--outputTransport", "streamableHttp"]
    return [*front, "--stateful", "--port", str(port)]


def _present(*known: tuple[str, str, Callable[[int], list[str]]]) -> Iterator[Proxy]:
    for program, name, command in known:
        if Path(program).exists():
            yield name, command
        else:
            print(f"  {name} is left out: it is not installed, and cannot be")


def _install() -> None:
    """Install what is missing; what cannot be had is found missing again."""
    for package, program in (("mcp-proxy", MCP_PROXY), ("fastmcp", FASTMCP)):
        if not Path(program).exists():
            venv = Path(program).parent.parent
            venv.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run([sys.executable, "-m", "venv", venv], check=False, capture_output=True)
            subprocess.run([venv / "bin" / "pip", "install", "-q", package], check=False, capture_output=True)
    npm = shutil.which("npm")
    if npm and not (CACHE / "node_modules").exists():
        asked = [npm, "install", "--prefix", CACHE, "--no-audit", "--no-fund", "mcp-proxy", "supergateway"]
        subprocess.run(asked, check=False, capture_output=True)
