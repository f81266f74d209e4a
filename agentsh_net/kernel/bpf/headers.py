"""What BCC may use as kernel headers, best first. The probes need none of a real kernel's: they use UAPI types alone.

First our own few stand-ins for what BCC's helpers include (bpf/bcc), which fit every kernel and need no package; then the
running kernel's own headers; then whatever Debian's split packages left in /usr/src, merged by symbolic links.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_USR_SRC = Path("/usr/src")
_MODULES = Path("/lib/modules")


@dataclass(frozen=True, slots=True)
class Headers:
    """A tree that BCC can be pointed at. `path` is empty for BCC's own search."""

    name: str
    path: str = ""


def candidates(source: Path, scratch: Path) -> Iterator[Headers]:
    """Yield the trees to try. `scratch` is a private directory for links; nothing is written anywhere else."""
    stand_ins = source / "bcc"
    if stand_ins.is_dir():
        yield Headers("stand-ins", str(stand_ins))
    if (_MODULES / os.uname().release / "build").is_dir():
        yield Headers(f"linux-headers of {os.uname().release}")
    for tree in sorted(_USR_SRC.glob("linux-headers-*"), reverse=True):
        if (tree / "include/generated/autoconf.h").is_file():
            yield Headers(tree.name, str(_merged(tree, scratch / tree.name)))


def _merged(tree: Path, target: Path) -> Path:
    """Link the architecture's tree and its common half into one, as /lib/modules/*/{build,source} are together."""
    halves = [tree, *(half for half in tree.parent.glob("linux-headers-*-common*") if _belongs(half, tree))]
    for half in halves:
        for folder in ("include", *(f"arch/{arch.name}/include" for arch in (half / "arch").glob("*"))):
            for entry in (half / folder).glob("*"):
                link = target / folder / entry.name
                link.parent.mkdir(parents=True, exist_ok=True)
                if not link.is_symlink():
                    link.symlink_to(entry)
    return target


def _belongs(common: Path, tree: Path) -> bool:
    return tree.name.startswith(common.name.partition("-common")[0] + "-")
