"""bpf(2)'s links and pins: what holds a program at a cgroup by a file in bpffs. Errors are OSError with the call's name.

Which links are made, and where they are pinned, is attachment.py's business.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentsh_net.kernel.bpf.syscall import call, foremost

# enum bpf_cmd
_OBJ_PIN, _OBJ_GET, _OBJ_GET_INFO = 6, 7, 15
_LINK_CREATE, _LINK_GET_FD_BY_ID, _LINK_GET_NEXT_ID, _LINK_DETACH = 28, 30, 31, 34
_OF_CGROUP = 3  # enum bpf_link_type
_NO_DESCRIPTOR = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Link:
    """What the kernel says of a link to a cgroup; `cgroup_id` is 0 once it was detached, or its cgroup is gone."""

    program_id: int
    cgroup_id: int
    attach_type: int


def supported() -> bool:
    """Say whether this kernel has links that can be made and detached (Linux 5.9), by a call that touches nothing."""
    try:
        call(_LINK_DETACH, struct.pack("=I", _NO_DESCRIPTOR), "LINK_DETACH")
    except OSError as error:
        # EINVAL: it knows no such command. Else it complains of the descriptor, or of who asks.
        return error.errno != errno.EINVAL
    return True


def create(cgroup_fd: int, program_fd: int, attach_type: int) -> int:
    """Attach a program as `syscall.attach` does, for as long as the returned descriptor or a pin of it is there."""
    head = struct.pack("=III", program_fd, cgroup_fd, attach_type)
    return foremost(lambda flag: call(_LINK_CREATE, head + struct.pack("=I", flag), "LINK_CREATE")[0])


def detach(link_fd: int) -> None:
    """Detach a link at once, whoever else holds or has pinned it; one that is detached is no error."""
    call(_LINK_DETACH, struct.pack("=I", link_fd), "LINK_DETACH")


def look(link_fd: int) -> Link | None:
    """Return what the kernel says of a link now, None for one that is of no cgroup."""
    info = ctypes.create_string_buffer(256)
    attr = struct.pack("=IIQ", link_fd, len(info), ctypes.addressof(info))
    call(_OBJ_GET_INFO, attr, "OBJ_GET_INFO_BY_FD")
    kind, _, program_id, cgroup_id, attach_type = struct.unpack_from("=IIIxxxxQI", info.raw)
    return Link(program_id, cgroup_id, attach_type) if kind == _OF_CGROUP else None


def everywhere() -> Iterator[int]:
    """Yield a descriptor of every link of this kernel, good until the next one (needs CAP_SYS_ADMIN)."""
    number = 0
    while True:
        try:
            answer = call(_LINK_GET_NEXT_ID, struct.pack("=I", number), "LINK_GET_NEXT_ID")[1]
        except OSError as error:
            if error.errno == errno.ENOENT:
                return
            raise
        number = struct.unpack_from("=I", answer, 4)[0]
        try:
            fd = call(_LINK_GET_FD_BY_ID, struct.pack("=I", number), "LINK_GET_FD_BY_ID")[0]
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EAGAIN}:
                continue  # gone meanwhile, or not yet made
            raise
        try:
            yield fd
        finally:
            os.close(fd)


def pin(path: Path, fd: int) -> None:
    """Give a program, a map or a link a name in bpffs, by which it lives on."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    call(_OBJ_PIN, struct.pack("=QI", ctypes.addressof(name), fd), "OBJ_PIN")


def pinned(path: Path) -> int:
    """Return a new descriptor of what is pinned there."""
    name = ctypes.create_string_buffer(os.fsencode(path))
    return call(_OBJ_GET, struct.pack("=Q", ctypes.addressof(name)), "OBJ_GET")[0]
