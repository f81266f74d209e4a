"""Sockets to listen on, bound while the configuration can still be refused: an address that cannot be had names its place in the file.

Who accepts on them is not its business.
"""

from __future__ import annotations

import errno
import socket
from typing import Any, Final

from agentsh_net.core.configuration.settings import Gateway, Metrics, Proxy
from agentsh_net.core.errors import ConfigError, Problem


def bind(settings: Proxy | Gateway | Metrics, section: str = "proxy") -> list[socket.socket]:
    """Return one bound socket a worker, all on one port (0: any). Raises ConfigError where that cannot be had."""
    workers = settings.workers if isinstance(settings, Proxy) else 1  # MCP sessions live in one process
    try:
        family, _, _, _, address = socket.getaddrinfo(
            settings.listen, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # Exclusive first: SO_REUSEPORT alone would silently share the port with another daemon of ours.
        first = _bound(family, address, shared=False)
        if workers == 1:
            return [first]
        address = (address[0], first.getsockname()[1], *address[2:])
        first.close()
        return [_bound(family, address, shared=True) for _ in range(workers)]
    except OSError as error:
        found = f"{settings.listen}:{settings.port} ({error.strerror or error})"
        if isinstance(error, socket.gaierror) or error.errno in _NO_ADDRESS:
            problem = Problem(f"{section}.listen", found, "an address of this host")
        else:
            problem = Problem(f"{section}.port", found, "an address and a port that are free, or port 0")
        raise ConfigError([problem]) from error


# 127.0.0.1 too, where there is IPv6 alone.
_NO_ADDRESS: Final = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - compared with, not bound


def url(listener: socket.socket) -> str:
    """Return the URL of what `listener` serves, for who is on this host: one that takes every address is at the loopback's too."""
    host, port = listener.getsockname()[:2]
    host = _LOOPBACK.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _bound(family: int, address: Any, *, shared: bool) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.setblocking(False)
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener
