"""Who besides root may look: the group `agentsh-net`, where the administrator made one.

The control socket and the store give it access to their files; nothing here decides what the group may ask for.
"""

from __future__ import annotations

import contextlib
import grp
import os
from pathlib import Path
from typing import Final

GROUP: Final = "agentsh-net"


def group_id() -> int | None:
    """Return the group's id, or None where the group does not exist."""
    try:
        return grp.getgrnam(GROUP).gr_gid
    except KeyError:
        return None


def share(path: Path, mode: int) -> None:
    """Set a file's mode whatever the umask, and give it to the group if there is one and we may. Raises OSError."""
    path.chmod(mode)
    group = group_id()
    if group is not None and os.geteuid() == 0:
        # A container's root without CAP_CHOWN: then only root may look.
        with contextlib.suppress(PermissionError):
            os.chown(path, -1, group)


def make_directory(path: Path) -> None:
    """Make a directory of mode 0750, and its parents; one that exists is left as it is. Raises OSError."""
    if not path.is_dir():
        path.mkdir(parents=True)
        share(path, 0o750)
