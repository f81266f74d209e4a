"""Loads the prebuilt probes (bpf/connect.bpf.o): no compiler, no headers, no library, a few milliseconds.

Maps are created, their descriptors written into the programs, the programs given to the verifier. Which loader is asked
first is loader.py's business; nothing is attached here.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack

from agentsh_net.core.abi import bpf_object
from agentsh_net.core.abi.bpf_program import INSTRUCTION
from agentsh_net.core.abi.btf import MapDefinition
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import probe_source, syscall

_LAYER = "ebpf"
_REINSTALL = "reinstall agentsh-net (in a checkout: bpf/build)"


def read() -> bpf_object.BpfObject:
    """Return the probes that ship with this installation. Raises KernelError where they are missing or not for this machine."""
    path = probe_source.directory() / probe_source.OBJECT
    if sys.byteorder != "little":
        raise KernelError(
            "the prebuilt probes are for little-endian machines",
            layer=_LAYER,
            remedy="set network.bpf_loader: bcc",
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = f"the prebuilt probes are missing: {path}: {error.strerror}"
        raise KernelError(reason, layer=_LAYER, remedy=_REINSTALL) from error
    probes = bpf_object.parse(data)
    if absent := {*probe_source.PROGRAMS, *probe_source.MAPS} - {*probes.programs, *probes.maps}:
        reason = f"{path} lacks {', '.join(sorted(absent))}"
        raise KernelError(reason, layer=_LAYER, remedy=_REINSTALL)
    return probes


def load(
    probes: bpf_object.BpfObject, kept: Mapping[str, int] | None = None
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the descriptors of programs and maps, by name. Raises KernelError with all that the verifier said.

    `kept` are ids of maps, by name, that are used on as they are: what a predecessor keeps in them is known to both.
    """
    with ExitStack() as undo:
        maps = {
            name: _open(name, probes.maps[name], (kept or {}).get(name, 0), undo)
            for name in probe_source.MAPS
        }
        types = _load_types(probes)
        try:
            programs = {name: _load(name, probes, maps, types, undo) for name in probe_source.PROGRAMS}
        finally:
            os.close(types)
        undo.pop_all()
    return programs, maps


def _open(name: str, wanted: MapDefinition, kept: int, undo: ExitStack) -> int:
    if kept:
        with contextlib.suppress(OSError):  # gone with its programs meanwhile
            fd = syscall.map_fd(kept)
            undo.callback(os.close, fd)
            return fd
    return _create(name, wanted, undo)


def _create(name: str, wanted: MapDefinition, undo: ExitStack) -> int:
    def create() -> int:
        return syscall.create_map(
            name,
            wanted.kind,
            key_size=wanted.key_size,
            value_size=wanted.value_size,
            max_entries=wanted.max_entries,
            flags=wanted.flags,
        )

    try:
        fd = _beyond_memlock(create)
    except OSError as error:
        raise KernelError(
            f"cannot create map {name}: {error.strerror}", layer=_LAYER, remedy=_remedy(error)
        ) from error
    undo.callback(os.close, fd)
    return fd


def _load_types(probes: bpf_object.BpfObject) -> int:
    try:
        return _beyond_memlock(lambda: syscall.load_types(probes.types.btf))
    except OSError as error:
        reason = f"cannot tell the kernel the types of the probes' functions: {error.strerror}"
        raise KernelError(reason, layer=_LAYER, remedy=_remedy(error)) from error


def _load(name: str, probes: bpf_object.BpfObject, maps: dict[str, int], types: int, undo: ExitStack) -> int:
    program = probes.programs[name]
    code = program.relocated(maps)
    numbers = probes.types.numbers
    functions = syscall.Functions(
        types, [(at // INSTRUCTION, numbers[each]) for at, each in program.functions]
    )
    attach_type = probe_source.PROGRAMS[name]
    try:
        fd = _beyond_memlock(
            lambda: syscall.load_program(
                name,
                syscall.PROGRAM_TYPES[attach_type],
                attach_type,
                code=code,
                licence=probes.licence,
                functions=functions,
            )
        )
    except syscall.VerifierError as error:
        reason = complaint(name, error)
        raise KernelError(reason, layer=_LAYER, remedy=_remedy(error)) from error
    undo.callback(os.close, fd)
    return fd


def complaint(name: str, error: syscall.VerifierError) -> str:
    """Return the verifier's last useful line first, then everything that it said."""
    lines = [line for line in error.log.splitlines() if line.strip()]
    # The log ends with statistics; what was wrong stands before them.
    useful = [
        line for line in lines if not line.startswith(("processed ", "verification time", "stack depth"))
    ]
    what = useful[-1].strip() if useful else error.strerror
    whole = "".join(f"\n{line}" for line in lines)
    return f"the kernel refused {name}: {what}{whole}"


def _beyond_memlock(action: Callable[[], int]) -> int:
    """Do it again without the limit of locked memory if it was refused: before Linux 5.11 maps and programs counted as such."""
    try:
        return action()
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        if before[0] == resource.RLIM_INFINITY:
            raise
        # Without CAP_SYS_RESOURCE, as in a container, the hard limit is all that can be had.
        for most in (resource.RLIM_INFINITY, before[1]):
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(resource.RLIMIT_MEMLOCK, (most, most))
                break
    try:
        return action()
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


def _remedy(error: OSError) -> str:
    match error.errno:
        case errno.EPERM:
            return "run as root (CAP_BPF and CAP_NET_ADMIN), outside of a container that filters bpf(2)"
        case errno.ENOMEM:
            return "memory is short, or the cgroup's limit of it"
        case _:
            return "set network.bpf_loader: bcc, and please report the kernel's words"
