"""How our programs are held in force at a cgroup: by links that are pinned in bpffs, or attached to the cgroup itself.

Either outlives this process, and either is found by the programs' names, whoever made it. What the programs decide by is
ebpf.py's business, where pins go bpffs.py's.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Protocol

from agentsh_net.core.errors import NO_FILES, KernelError
from agentsh_net.kernel.bpf import bpffs, links, syscall
from agentsh_net.kernel.bpf.loader import Loaded
from agentsh_net.kernel.bpf.probe_source import PROGRAMS

_LOG = logging.getLogger(__name__)
_PREFIX = "agentsh_"  # of the names of our programs
# Hooks whose programs may put another address in place of the one that was asked for, as load balancers do.
_ADDRESSED = {syscall.CONNECT4, syscall.CONNECT6, syscall.SENDMSG4, syscall.SENDMSG6}
_LINK = "link_"  # of the names of links' pins, which are no objects with a name of their own


class Attachment(Protocol):
    """What holds the programs of one daemon at one cgroup. Every method but `close` raises OSError."""

    def attach(self) -> None:
        """Attach what is not attached; what is stays as it is."""
        ...

    def lost(self) -> str:
        """Say what is not as `attach` left it, as the kernel tells."""
        ...

    def detach(self) -> None:
        """Detach everything at once."""
        ...

    def describe(self) -> str:
        """Say how it is done, for `status`."""
        ...

    def close(self) -> None:
        """Let go of every descriptor; what is attached stays attached."""
        ...


class Direct:
    """Programs attached to the cgroup itself: no file, no mount. `why` says why not by links."""

    def __init__(self, cgroup: int, programs: Mapping[str, int], why: str) -> None:
        self._cgroup = cgroup
        self._programs = programs
        self._ids = {name: syscall.program_info(fd)[0] for name, fd in programs.items()}
        self._why = why

    def attach(self) -> None:
        """Attach what is not attached."""
        self.attach_all(self._missing())

    def attach_all(self, names: Sequence[str]) -> None:
        """Attach these programs."""
        for name in names:
            syscall.attach(self._cgroup, self._programs[name], PROGRAMS[name])

    def lost(self) -> str:
        """Say which programs are not attached now."""
        return _told("detached", self._missing())

    def _missing(self) -> list[str]:
        attached = {kind: syscall.attached(self._cgroup, kind) for kind in PROGRAMS.values()}
        return [name for name, kind in PROGRAMS.items() if self._ids[name] not in attached[kind]]

    def detach(self) -> None:
        """Detach every program."""
        for name, kind in PROGRAMS.items():
            syscall.detach(self._cgroup, self._programs[name], kind)

    def describe(self) -> str:
        """Say how, and why not otherwise."""
        return f"programs attached to the cgroup ({self._why})"

    def close(self) -> None:
        """There is nothing of its own."""


class Linked:
    """Links, pinned in a directory of this daemon's own with the programs and their maps."""

    def __init__(self, cgroup: int, loaded: Loaded, folder: Path) -> None:
        self._cgroup = cgroup
        self._cgroup_id = os.fstat(cgroup).st_ino
        self._loaded = loaded
        self._ids = {name: syscall.program_info(fd)[0] for name, fd in loaded.programs.items()}
        self._folder = folder
        self._links: dict[str, int] = {}  # held open: what root unpins is in force until it is pinned again
        self._inodes: dict[str, int] = {}  # of the pins that were made

    def attach(self) -> None:
        """Make the links that are not in force, and the pins that are not there. Raises KernelError too."""
        bpffs.make(self._folder)
        for name in self._detached():
            link = links.create(self._cgroup, self._loaded.programs[name], PROGRAMS[name])
            self._drop(name)
            self._links[name] = link
        for name in self._unpinned():
            (self._folder / name).unlink(missing_ok=True)
            links.pin(self._folder / name, self._objects()[name])
            self._inodes[name] = (self._folder / name).lstat().st_ino

    def lost(self) -> str:
        """Say which links are not in force, or which pins are gone or somebody else's."""
        return _told("detached", self._detached()) or _told(
            f"no longer pinned in {self._folder}", self._unpinned()
        )

    def _objects(self) -> dict[str, int]:
        """Return what is to be pinned, by the name of its pin."""
        links = {_pin_of(name): fd for name, fd in self._links.items()}
        return {**self._loaded.maps, **self._loaded.programs, **links}

    def _detached(self) -> list[str]:
        return [name for name, kind in PROGRAMS.items() if not self._holds(name, kind)]

    def _holds(self, name: str, kind: int) -> bool:
        wanted = links.Link(self._ids[name], self._cgroup_id, kind)
        return name in self._links and links.look(self._links[name]) == wanted

    def _unpinned(self) -> list[str]:
        found = bpffs.inodes(self._folder)
        return [n for n in self._objects() if n not in found or found[n] != self._inodes.get(n)]

    def _drop(self, name: str) -> None:
        if (link := self._links.pop(name, None)) is not None:
            self._inodes.pop(_pin_of(name), None)
            links.detach(link)
            os.close(link)

    def detach(self) -> None:
        """Detach every link and remove the pins."""
        for name in tuple(self._links):
            self._drop(name)
        bpffs.remove(self._folder)
        self._inodes.clear()

    def describe(self) -> str:
        """Say where they are."""
        return f"links pinned in {self._folder}"

    def close(self) -> None:
        """Let the pins hold the links."""
        for link in self._links.values():
            os.close(link)
        self._links.clear()


def choose(hierarchy: Path, cgroup: int, loaded: Loaded, name: str) -> Attachment:
    """Return how programs will be held at a hierarchy's root; pins would go into a directory of this name. Raises OSError."""
    try:
        return Linked(cgroup, loaded, _place(hierarchy) / name)
    except KernelError as error:
        if error.remedy:
            _LOG.warning("programs are not pinned: %s (fix: %s)", error, error.remedy)
        return Direct(cgroup, loaded.programs, str(error))


def attach(held: Attachment, cgroup: int, programs: Mapping[str, int]) -> Attachment:
    """Attach what is not attached, and return what holds it now: where pinning fails, the cgroup itself. Raises OSError."""
    if isinstance(held, Direct):
        held.attach()
        return held
    try:
        held.attach()
    except (OSError, KernelError) as error:
        if isinstance(error, OSError) and error.errno in NO_FILES:
            raise  # what is pinned is so still: a moment without descriptors takes nothing away
        _LOG.warning("programs cannot be pinned (%s): they are attached to the cgroup itself", error)
        instead = Direct(cgroup, programs, str(error))
    else:
        return held
    try:
        instead.attach_all(tuple(PROGRAMS))  # beside links that may hold them still
    except OSError:
        instead.detach()
        raise
    with contextlib.suppress(OSError):  # it cannot be written: pins that hold nothing go with the next start
        held.detach()
    held.close()
    return instead


def foreseen(hierarchy: Path) -> str:
    """Say how programs would be held at a hierarchy's root, changing nothing. Raises OSError."""
    try:
        return f"links, to be pinned in {_place(hierarchy)}"
    except KernelError as error:
        return f"programs, to be attached to the cgroup itself ({error})"


def behind(cgroup_fd: int, own: AbstractSet[int]) -> str:
    """Say where programs of others run before these, which then judge what those made of an address. Raises OSError."""
    hooks = {
        name: syscall.attached(cgroup_fd, kind, effective=True)
        for name, kind in PROGRAMS.items()
        if kind in _ADDRESSED
    }
    late = [name for name, ids in hooks.items() if ids and ids[0] not in own]
    return f"behind others' programs, which may rewrite addresses: {', '.join(late)}" if late else ""


def ours(cgroup_fd: int) -> list[tuple[int, int]]:
    """Return (program id, attach type) of every program of this project on a cgroup, whoever attached it and how. Raises OSError.

    Another version may have used attach types that this one does not.
    """
    found = []
    for kind in syscall.CGROUP_ATTACH_TYPES:
        try:
            ids = syscall.attached(cgroup_fd, kind)
        except OSError as error:
            if error.errno == errno.EINVAL and kind not in PROGRAMS.values():
                continue  # this kernel has no such hook
            raise
        for program_id in ids:
            fd = syscall.program_fd(program_id)
            try:
                if syscall.program_info(fd)[1].startswith(_PREFIX):
                    found.append((program_id, kind))
            finally:
                os.close(fd)
    return found


def detach_ours(cgroup_fd: int, *, keep: set[int]) -> int:
    """Detach every program of this project but `keep`, by whatever holds it; return how many there were. Raises OSError."""
    strangers = [(program_id, kind) for program_id, kind in ours(cgroup_fd) if program_id not in keep]
    for program_id, kind in strangers:
        fd = syscall.program_fd(program_id)
        try:
            syscall.detach(cgroup_fd, fd, kind)
        finally:
            os.close(fd)
    if strangers and (linked := {program_id for program_id, _ in ours(cgroup_fd)} - keep):
        _detach_links(os.fstat(cgroup_fd).st_ino, linked)
    return len(strangers)


def clear_pins(cgroup_id: int, *, keep: set[str]) -> None:
    """Remove the pins that are left of a hierarchy, but those in directories of these names; and those of cgroups that are gone. Raises OSError."""
    for place in bpffs.left(cgroup_id):
        bpffs.clear(place, keep=keep)
    for place in bpffs.everyones():
        links = [_looked(pin) for pin in place.glob(f"*/{_LINK}*")]
        if links and not any(link is not None and link.cgroup_id for link in links):
            bpffs.clear(place, keep=keep)


def _looked(pin: Path) -> links.Link | None:
    fd = links.pinned(pin)
    try:
        return links.look(fd)
    finally:
        os.close(fd)


def _detach_links(cgroup_id: int, programs: set[int]) -> None:
    """Detach the links that hold these programs at a cgroup, wherever they are pinned."""
    for fd in links.everywhere():
        link = links.look(fd)
        if link is not None and link.cgroup_id == cgroup_id and link.program_id in programs:
            links.detach(fd)


def _place(hierarchy: Path) -> Path:
    if not links.supported():
        raise KernelError("the kernel has no links that can be detached", layer="ebpf")
    return bpffs.directory(hierarchy)


def _pin_of(program: str) -> str:
    return _LINK + program.removeprefix(_PREFIX)


def _told(what: str, names: Sequence[str]) -> str:
    return f"{what}: {', '.join(names)}" if names else ""
