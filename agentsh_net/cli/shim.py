"""`shim`: wrap one stdio MCP server. Read here without click, because one starts with every server of every agent.

What the command line does not say plainly (help, a mistake) is left to click, by `shim_command`.
"""

from __future__ import annotations

import os

from agentsh_net import places
from agentsh_net.core.links.shim_link import beside

TYPE_CHECKING = False  # see agentsh_net.core.links.shim_link
if TYPE_CHECKING:
    from collections.abc import Sequence

    from agentsh_proxy.shim.main import Options

ENVIRONMENT = "AGENTSH_NET_SOCKET"
MAX_ID = 128  # core.configuration.scalars', which takes longer to import than a shim to start


def read(arguments: Sequence[str]) -> Options | None:
    """Return what `agentsh-net [--socket PATH] shim --server ID ... -- CMD...` says, None where it is not just that."""
    server = ""
    socket = os.environ.get(ENVIRONMENT) or places.shims_daemon(os.environ)
    hide = closed = False
    words = iter(arguments)
    begun = False
    for word in words:
        match word:
            case "shim" if not begun:
                begun = True
            case "--socket" if not begun:
                socket = next(words, "")
            case "--server" if begun:
                server = next(words, "")
            case "--hide-denied" if begun:
                hide = True
            case "--fail-closed" | "--fail-open" if begun:
                closed = word == "--fail-closed"
            case "--" if begun and 0 < len(server) <= MAX_ID and socket:
                command = tuple(words)
                return options(server, command, socket, hide=hide, closed=closed) if command else None
            case _:
                return None
    return None


def options(server: str, command: Sequence[str], socket: str, *, hide: bool, closed: bool) -> Options:
    """Return the options of a shim that asks at the socket beside this control socket."""
    from agentsh_proxy.shim.main import Options

    return Options(server, command, beside(socket), hide=hide, closed=closed)


def run(wanted: Options) -> int:
    """Run the shim and return its exit status."""
    from agentsh_proxy.shim import main

    return main.run(wanted)
