"""Where things lie when nobody says otherwise: the system's places for root, the XDG ones for a user without privileges.

Strings only, and nothing imported that a command as small as `version` would have to wait for.
"""

from __future__ import annotations

import os

from agentsh_net.core.links.shim_link import beside

TYPE_CHECKING = False  # see core.links.shim_link: the shim asks here too
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Final

SYSTEM_SOCKET: Final = "/run/agentsh-net/control.sock"
SYSTEM_STORE: Final = "/var/lib/agentsh-net/events.db"


def own_store(home: str, environ: Mapping[str, str]) -> str:
    """Return where a user without privileges keeps the audit store (XDG base directory specification)."""
    return f"{_state(home, environ)}/agentsh-net/events.db"


def own_socket(home: str, environ: Mapping[str, str]) -> str:
    """Return where the control socket of such a user's daemon lies."""
    return f"{environ.get('XDG_RUNTIME_DIR') or _state(home, environ)}/agentsh-net/control.sock"


def _state(home: str, environ: Mapping[str, str]) -> str:
    return environ.get("XDG_STATE_HOME") or f"{home}/.local/state"


def socket_to_ask(environ: Mapping[str, str], uid: int) -> str:
    """Return the socket of the daemon that a command means: the user's own where there is one, else the system's."""
    own = own_socket(environ.get("HOME") or "/", environ)
    return own if uid != 0 and os.path.exists(own) else SYSTEM_SOCKET  # noqa: PTH110


def shims_daemon(environ: Mapping[str, str]) -> str:
    """Return the control socket of the daemon that a shim asks: the system's where there is one, as root's policy comes first."""
    own = own_socket(environ.get("HOME") or "/", environ)
    there = (socket for socket in (SYSTEM_SOCKET, own) if os.path.exists(beside(socket)))  # noqa: PTH110
    return next(there, SYSTEM_SOCKET)


def store_to_read(environ: Mapping[str, str], uid: int) -> str:
    """Return the database that a command means, likewise."""
    own = own_store(environ.get("HOME") or "/", environ)
    return own if uid != 0 and os.path.exists(own) else SYSTEM_STORE  # noqa: PTH110
