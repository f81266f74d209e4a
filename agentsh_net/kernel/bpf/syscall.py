"""bpf(2) by ctypes: programs and maps, made, attached, asked. Errors are OSError with the call's name.

The one door to this system call. What is loaded and why is not its business (prebuilt.py, ebpf.py); links and pins are
links.py's.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from agentsh_net.core.abi import btf

T = TypeVar("T")

_NUMBERS = {
    "x86_64": 321,
    "aarch64": 280,
    "riscv64": 280,
    "loongarch64": 280,
    "ppc64le": 361,
    "s390x": 351,
    "armv7l": 386,
    "i686": 357,
}

# enum bpf_cmd
_MAP_CREATE, _MAP_LOOKUP, _MAP_UPDATE = 0, 1, 2
_PROG_LOAD = 5
_PROG_ATTACH, _PROG_DETACH = 8, 9
_PROG_GET_FD_BY_ID, _MAP_GET_FD_BY_ID, _OBJ_GET_INFO, _PROG_QUERY = 13, 14, 15, 16
_BTF_LOAD = 18
_MAP_LOOKUP_BATCH, _MAP_UPDATE_BATCH, _MAP_DELETE_BATCH = 24, 26, 27

# enum bpf_attach_type
INET_EGRESS, INET_SOCK_CREATE = 1, 2
CONNECT4, CONNECT6, SENDMSG4, SENDMSG6 = 10, 11, 14, 15

# All that a program may be attached to at a cgroup, up to Linux 6.18.
CGROUP_ATTACH_TYPES = (0, 1, 2, 3, 6, *range(8, 16), *range(18, 23), *range(29, 35), *range(49, 54))

# enum bpf_prog_type
CGROUP_SKB, CGROUP_SOCK, CGROUP_SOCK_ADDR = 8, 9, 18
# enum bpf_map_type
SK_STORAGE = 24
# What may be attached where.
PROGRAM_TYPES = {
    INET_EGRESS: CGROUP_SKB,
    INET_SOCK_CREATE: CGROUP_SOCK,
    **dict.fromkeys((CONNECT4, CONNECT6, SENDMSG4, SENDMSG6), CGROUP_SOCK_ADDR),
}

_ALLOW_MULTI = 1 << 1  # BPF_F_ALLOW_MULTI: programs of others on the same cgroup stay
# BPF_F_PREORDER: before all that have it not, whichever came first. Programs since Linux 6.15, links since a later one.
_PREORDER = 1 << 6
_EFFECTIVE = 1 << 0  # BPF_F_QUERY_EFFECTIVE
# The kernel allows 64 programs per cgroup and attach type (BPF_CGROUP_MAX_PROGS); as many in effect may be of each cgroup above.
_MAX_PROGRAMS = 64 * 16
# Maps that a program may use (MAX_USED_MAPS).
_MAX_MAPS = 64
# A batch copies its keys and values at once: 16384 of ours are half a megabyte.
_BATCH = 16384
# union bpf_attr: the kernel takes any size whose unknown tail is zero.
_ATTR_BYTES = 128
# BPF_OBJ_NAME_LEN with its final zero.
_NAME_BYTES = 16
# struct bpf_func_info
_FUNCTION_BYTES = 8
# What the verifier says of our longest program at its most talkative is a tenth of this; of any other the end is lost.
_LOG_BYTES = 4 << 20

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


def call(command: int, attr: bytes, what: str) -> tuple[int, bytes]:
    """Call bpf(2); return its result and the attribute union as the kernel left it. Raises OSError."""
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, f"bpf {what}: unknown machine {platform.machine()}")
    buffer = ctypes.create_string_buffer(attr.ljust(_ATTR_BYTES, b"\0"), _ATTR_BYTES)
    result = _libc.syscall(ctypes.c_long(number), ctypes.c_int(command), buffer, ctypes.c_uint(_ATTR_BYTES))
    if result < 0:
        problem = ctypes.get_errno()
        raise _CallError(problem, f"bpf {what}: {os.strerror(problem)}", buffer.raw)
    return int(result), buffer.raw


class _CallError(OSError):
    """A failed call with the attribute union as the kernel left it: it says how far a batch came."""

    def __init__(self, number: int, message: str, attr: bytes) -> None:
        super().__init__(number, message)
        self.attr = attr


class VerifierError(OSError):
    """The kernel refused a program; `log` is all that its verifier said, perhaps nothing."""

    def __init__(self, number: int, message: str, log: str) -> None:
        super().__init__(number, message)
        self.log = log


def create_map(
    name: str, kind: int, *, key_size: int, value_size: int, max_entries: int, flags: int = 0
) -> int:
    """Create a map and return its descriptor, which no child inherits."""
    attr = struct.pack("=IIIII", kind, key_size, value_size, max_entries, flags) + bytes(8) + _name(name)
    if kind != SK_STORAGE:
        return call(_MAP_CREATE, attr, "MAP_CREATE")[0]
    types = load_types(btf.type_of_bytes(value_size))
    try:
        return call(_MAP_CREATE, attr + struct.pack("=IIII", 0, types, btf.KEY, btf.VALUE), "MAP_CREATE")[0]
    finally:
        os.close(types)


def load_types(data: bytes) -> int:
    """Load type information and return its descriptor."""
    buffer = ctypes.create_string_buffer(data, len(data))
    return call(_BTF_LOAD, struct.pack("=QQII", ctypes.addressof(buffer), 0, len(data), 0), "BTF_LOAD")[0]


class Functions(NamedTuple):
    """Whose code is where: the descriptor of type information, and for each function its first instruction and its type's number."""

    types: int
    places: Sequence[tuple[int, int]]


def load_program(
    name: str, kind: int, attach_type: int, *, code: bytes, licence: str, functions: Functions | None = None
) -> int:
    """Load a program and return its descriptor, which no child inherits. Raises VerifierError."""
    functions = functions or Functions(0, ())
    # Without a log first: it costs time, and one that is too small would refuse a good program.
    try:
        return _load_program(name, kind, attach_type, code, licence, functions, None)
    except OSError as error:
        log = ctypes.create_string_buffer(_LOG_BYTES)
        try:
            return _load_program(name, kind, attach_type, code, licence, functions, log)
        except OSError:
            said = log.value.decode("utf-8", "replace")
            raise VerifierError(error.errno or 0, error.strerror or "", said) from error


def _load_program(
    name: str,
    kind: int,
    attach_type: int,
    code: bytes,
    licence: str,
    functions: Functions,
    log: ctypes.Array[ctypes.c_char] | None,
) -> int:
    instructions = ctypes.create_string_buffer(code, len(code))
    terms = ctypes.create_string_buffer(licence.encode("ascii"))
    places = ctypes.create_string_buffer(b"".join(struct.pack("=II", *place) for place in functions.places))
    attr = struct.pack(
        "=IIQQIIQII16sIIIIQI",
        kind,
        len(code) // 8,
        ctypes.addressof(instructions),
        ctypes.addressof(terms),
        0 if log is None else 1,
        0 if log is None else len(log),
        0 if log is None else ctypes.addressof(log),
        0,  # kern_version: for kprobes of old
        0,  # flags
        _name(name),
        0,  # ifindex
        attach_type,
        functions.types,
        _FUNCTION_BYTES if functions.places else 0,
        ctypes.addressof(places) if functions.places else 0,
        len(functions.places),
    )
    return call(_PROG_LOAD, attr, "PROG_LOAD")[0]


def _name(text: str) -> bytes:
    return text.encode("ascii")[: _NAME_BYTES - 1].ljust(_NAME_BYTES, b"\0")


def attach(cgroup_fd: int, program_fd: int, kind: int) -> None:
    """Attach a program to a cgroup, beside the programs of others and before them, where the kernel has that."""
    head = struct.pack("=III", cgroup_fd, program_fd, kind)
    foremost(lambda flag: call(_PROG_ATTACH, head + struct.pack("=I", _ALLOW_MULTI | flag), "PROG_ATTACH"))


def foremost(attach: Callable[[int], T]) -> T:
    """Return what `attach` does with the flag by which programs run before those of others; without, where it is not known."""
    try:
        return attach(_PREORDER)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return attach(0)


def detach(cgroup_fd: int, program_fd: int, kind: int) -> None:
    """Detach a program from a cgroup; one that is not attached is no error."""
    try:
        call(_PROG_DETACH, struct.pack("=III", cgroup_fd, program_fd, kind), "PROG_DETACH")
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise


def attached(cgroup_fd: int, kind: int, *, effective: bool = False) -> list[int]:
    """Return the ids of the programs that are attached to this very cgroup, oldest first; or of all that run in it, in that order."""
    ids = (ctypes.c_uint32 * _MAX_PROGRAMS)()
    flags = _EFFECTIVE if effective else 0
    attr = struct.pack("=IIIIQI", cgroup_fd, kind, flags, 0, ctypes.addressof(ids), _MAX_PROGRAMS)
    _, answer = call(_PROG_QUERY, attr, "PROG_QUERY")
    return list(ids[: struct.unpack_from("=I", answer, 24)[0]])


def program_fd(program_id: int) -> int:
    """Return a new descriptor of a program (needs CAP_SYS_ADMIN)."""
    return call(_PROG_GET_FD_BY_ID, struct.pack("=I", program_id), "PROG_GET_FD_BY_ID")[0]


def program_info(fd: int) -> tuple[int, str]:
    """Return id and name of a program."""
    info = ctypes.create_string_buffer(256)
    call(_OBJ_GET_INFO, struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)), "OBJ_GET_INFO_BY_FD")
    return struct.unpack_from("=I", info.raw, 4)[0], info.raw[64:80].split(b"\0", 1)[0].decode(
        "ascii", "replace"
    )


def maps_of(program_id: int) -> dict[str, tuple[int, int, int]]:
    """Return name -> (id, kind, value size) of the maps that a program uses (needs CAP_SYS_ADMIN). Raises OSError."""
    fd = program_fd(program_id)
    try:
        ids = (ctypes.c_uint32 * _MAX_MAPS)()
        info = ctypes.create_string_buffer(256)
        struct.pack_into("=IQ", info, 52, _MAX_MAPS, ctypes.addressof(ids))
        call(_OBJ_GET_INFO, struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)), "OBJ_GET_INFO_BY_FD")
        count = min(struct.unpack_from("=I", info.raw, 52)[0], _MAX_MAPS)
    finally:
        os.close(fd)
    found = {}
    for number in ids[:count]:
        fd = map_fd(number)
        try:
            each = _map_info(fd)
        finally:
            os.close(fd)
        found[each.name] = (number, each.kind, each.value_size)
    return found


def map_fd(map_id: int) -> int:
    """Return a new descriptor of a map (needs CAP_SYS_ADMIN)."""
    return call(_MAP_GET_FD_BY_ID, struct.pack("=I", map_id), "MAP_GET_FD_BY_ID")[0]


def map_entries(fd: int) -> int:
    """Return a map's max_entries; of a ring buffer that is its size in bytes."""
    return _map_info(fd).max_entries


def is_frozen(map_fd: int) -> bool:
    """Say whether no process may write to a map any more (BPF_MAP_FREEZE), which nothing undoes."""
    return bool(
        re.search(r"^frozen:\s*1$", Path(f"/proc/self/fdinfo/{map_fd}").read_text("ascii"), re.MULTILINE)
    )


class _MapInfo(NamedTuple):
    """What of struct bpf_map_info is asked for."""

    kind: int
    value_size: int
    max_entries: int
    name: str


def _map_info(fd: int) -> _MapInfo:
    info = ctypes.create_string_buffer(256)
    call(_OBJ_GET_INFO, struct.pack("=IIQ", fd, len(info), ctypes.addressof(info)), "OBJ_GET_INFO_BY_FD")
    kind, value_size, entries, name = struct.unpack_from(f"=I8xII4x{_NAME_BYTES}s", info.raw)
    return _MapInfo(kind, value_size, entries, name.split(b"\0", 1)[0].decode("ascii", "replace"))


def update(map_fd: int, key: bytes, value: bytes) -> None:
    """Set one element."""
    k, v = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(value, len(value))
    attr = struct.pack("=IxxxxQQQ", map_fd, ctypes.addressof(k), ctypes.addressof(v), 0)
    call(_MAP_UPDATE, attr, "MAP_UPDATE_ELEM")


def lookup(map_fd: int, key: bytes, size: int) -> bytes:
    """Return the value of one element. For a per-CPU map `size` covers every possible CPU."""
    k, v = ctypes.create_string_buffer(key, len(key)), ctypes.create_string_buffer(size)
    attr = struct.pack("=IxxxxQQQ", map_fd, ctypes.addressof(k), ctypes.addressof(v), 0)
    call(_MAP_LOOKUP, attr, "MAP_LOOKUP_ELEM")
    return v.raw


def update_all(map_fd: int, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
    """Set many elements. A full map raises ENOSPC or E2BIG; what was set before that stays."""
    for start in range(0, len(keys), _BATCH):
        _batch(map_fd, _MAP_UPDATE_BATCH, keys[start : start + _BATCH], values[start : start + _BATCH])


def delete_all(map_fd: int, keys: Sequence[bytes]) -> None:
    """Delete many elements; one that is not there is no error."""
    start = 0
    while start < len(keys):
        chunk = keys[start : start + _BATCH]
        try:
            _batch(map_fd, _MAP_DELETE_BATCH, chunk, ())
            start += len(chunk)
        except _CallError as error:
            if error.errno != errno.ENOENT:
                raise
            start += struct.unpack_from("=I", error.attr, 32)[0] + 1  # past the one that was not there


def contents(map_fd: int, key_size: int, value_size: int) -> tuple[bytes, bytes]:
    """Return the keys and the values of a hash map or a trie, each one behind the other: the same bytes while nobody writes to it."""
    # The place of a hash map is a number, that of another map a key.
    position, room = ctypes.create_string_buffer(max(8, key_size)), _BATCH
    found_keys: list[bytes] = []
    found_values: list[bytes] = []
    at = ctypes.addressof(position)
    last = False
    while not last:
        keys, values = (ctypes.create_string_buffer(size * room) for size in (key_size, value_size))
        where = ctypes.addressof(keys), ctypes.addressof(values)
        attr = struct.pack("=QQQQIIQQ", at if found_keys else 0, at, *where, room, map_fd, 0, 0)
        try:
            _, answer = call(_MAP_LOOKUP_BATCH, attr, "MAP_LOOKUP_BATCH")
        except _CallError as error:
            if error.errno == errno.ENOSPC:  # one hash bucket did not fit
                room *= 2
                continue
            if error.errno != errno.ENOENT:
                raise
            answer, last = error.attr, True
        count = struct.unpack_from("=I", answer, 32)[0]
        found_keys.append(ctypes.string_at(keys, count * key_size))
        found_values.append(ctypes.string_at(values, count * value_size))
    return b"".join(found_keys), b"".join(found_values)


def array_values(map_fd: int, entries: int, value_size: int) -> bytes:
    """Return every value of an array map, in order."""
    values = ctypes.create_string_buffer(entries * value_size)
    keys, position = ctypes.create_string_buffer(_BATCH * 4), ctypes.create_string_buffer(8)
    at, done = ctypes.addressof(position), 0
    while done < entries:
        room, where = min(_BATCH, entries - done), ctypes.addressof(values) + done * value_size
        attr = struct.pack(
            "=QQQQIIQQ", at if done else 0, at, ctypes.addressof(keys), where, room, map_fd, 0, 0
        )
        try:
            _, answer = call(_MAP_LOOKUP_BATCH, attr, "MAP_LOOKUP_BATCH")
        except _CallError as error:
            if error.errno != errno.ENOENT:
                raise
            answer = error.attr  # the last batch says so
        count = struct.unpack_from("=I", answer, 32)[0]
        if not count:
            raise OSError(errno.ENODATA, "bpf MAP_LOOKUP_BATCH: fewer elements than the map has")
        done += count
    return values.raw


def _batch(map_fd: int, command: int, keys: Sequence[bytes], values: Sequence[bytes]) -> None:
    k, v = b"".join(keys), b"".join(values)
    key_buffer, value_buffer = ctypes.create_string_buffer(k, len(k)), ctypes.create_string_buffer(v, len(v))
    addresses = ctypes.addressof(key_buffer), ctypes.addressof(value_buffer)
    what = "MAP_UPDATE_BATCH" if command == _MAP_UPDATE_BATCH else "MAP_DELETE_BATCH"
    call(command, struct.pack("=QQQQIIQQ", 0, 0, *addresses, len(keys), map_fd, 0, 0), what)


def possible_cpus() -> int:
    """Return how many values a per-CPU map has for one key (/sys/devices/system/cpu/possible, e.g. `0-3`)."""
    text = Path("/sys/devices/system/cpu/possible").read_text(encoding="ascii").strip()
    return max(int(part.rpartition("-")[2]) for part in text.split(",")) + 1
