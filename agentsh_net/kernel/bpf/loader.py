"""Gets the probes into the kernel and holds their descriptors: the prebuilt object, or a child with BCC.

Whoever loads, the result is the same `Loaded`; attaching and filling maps is ebpf.py's business.
"""

from __future__ import annotations

import array
import errno
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import bcc_compile, prebuilt
from agentsh_net.kernel.distribution import absent

REMEDY = "sudo apt install python3-bpfcc"
# Seconds. BCC takes half a second here; 140 s were seen in an emulated machine with real kernel headers.
TIMEOUT = 300.0
_MAX_DESCRIPTORS = 32
# Of what the compiler and the verifier say: whole for any program of our size, bounded for any other.
_MAX_COMPLAINT = 64 << 10


@dataclass(frozen=True, slots=True)
class Loaded:
    """Programs and maps by name, as descriptors that the holder closes. `how` is for status."""

    programs: dict[str, int]
    maps: dict[str, int]
    how: str

    def close(self) -> None:
        """Close every descriptor; what is attached stays attached."""
        for fd in (*self.programs.values(), *self.maps.values()):
            os.close(fd)


def load(which: str = "auto", kept: Mapping[str, int] | None = None) -> Loaded:
    """Load by `network.bpf_loader`: prebuilt, bcc, or auto: bcc only where prebuilt fails. Raises KernelError.

    `kept`: maps of a predecessor's, see prebuilt.py; BCC makes its own.
    """
    match which:
        case "prebuilt":
            return load_prebuilt(kept)
        case "bcc":
            return load_with_bcc()
    try:
        return load_prebuilt(kept)
    except KernelError as first:
        if isinstance(first.__cause__, OSError) and first.__cause__.errno == errno.EPERM:
            raise  # whoever may not load, may not compile and load either
        try:
            loaded = load_with_bcc()
        except KernelError as second:
            remedy = f"{first.remedy}; or {second.remedy}"
            raise KernelError(f"{first}\nand with BCC: {second}", layer="ebpf", remedy=remedy) from second
        # The reason alone, not the whole log: this is a line of `status`.
        return replace(loaded, how=f"{loaded.how}, because {str(first).partition(chr(10))[0]}")


def load_prebuilt(kept: Mapping[str, int] | None = None) -> Loaded:
    """Load the object that ships with this package. Raises KernelError with all that the verifier said."""
    probes = prebuilt.read()
    programs, maps = prebuilt.load(probes, kept)
    return Loaded(programs, maps, how=f"prebuilt by {probes.compiler}")


def load_with_bcc() -> Loaded:
    """Have a child compile and load the probes. Raises KernelError with all that the compiler or the verifier said."""
    data, fds = _compiled()
    names = json.loads(data)
    programs, maps = names["programs"], names["maps"]
    if len(fds) != len(programs) + len(maps):
        for fd in fds:
            os.close(fd)
        raise KernelError(
            f"the loader sent {len(fds)} descriptors of {len(programs) + len(maps)}",
            layer="ebpf",
            remedy="raise the limit of open files (ulimit -n, LimitNOFILE=)",
        )
    return Loaded(
        programs=dict(zip(programs, fds, strict=False)),
        maps=dict(zip(maps, fds[len(programs) :], strict=True)),
        how=f"bcc with {names['headers']}",
    )


def _compiled() -> tuple[bytes, list[int]]:
    """Return what the child says that it loaded, and the descriptors of that. Raises KernelError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, tempfile.TemporaryFile() as complaints:
        with theirs:
            # -I: a daemon run by root takes no module from the environment or the current directory.
            command = [sys.executable, "-I", "-m", bcc_compile.__name__, str(theirs.fileno())]
            child = subprocess.Popen(
                command,
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=complaints,
                stderr=complaints,
            )
        try:
            ours.settimeout(TIMEOUT)
            data, fds = _receive(ours)
        except TimeoutError as error:
            child.kill()
            reason = f"BCC has compiled for {TIMEOUT:g} s and is not through"
            remedy = "network.bpf_loader: prebuilt, or start again when the machine has less to do"
            raise KernelError(reason, layer="ebpf", remedy=remedy) from error
        finally:
            child.wait()
        if not data:
            complaints.seek(0)
            raise _failure(complaints.read(_MAX_COMPLAINT).decode("utf-8", "replace"), child.returncode)
    return data, fds


def _receive(ours: socket.socket) -> tuple[bytes, list[int]]:
    """Return a message and its descriptors, none of which a child of ours will inherit."""
    room = socket.CMSG_SPACE(_MAX_DESCRIPTORS * array.array("i").itemsize)
    data, ancillary, _flags, _address = ours.recvmsg(4096, room, socket.MSG_CMSG_CLOEXEC)
    fds = array.array("i")
    for level, kind, content in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)


def _failure(complaint: str, status: int) -> KernelError:
    if "No module named 'bcc'" in complaint:
        reason, remedy = absent("python3-bpfcc", "bcc")
        return KernelError(reason, layer="ebpf", remedy=remedy)
    if "Operation not permitted" in complaint or "EPERM" in complaint:
        reason = "the kernel refused to load BPF programs: CAP_BPF and CAP_NET_ADMIN (or root) are needed"
        return KernelError(f"{reason}\n{complaint}", layer="ebpf", remedy="run as root")
    remedy = 'sudo apt install "linux-headers-$(uname -r)", or install linux-headers of any version'
    return KernelError(f"the loader ended with {status}:\n{complaint}", layer="ebpf", remedy=remedy)
