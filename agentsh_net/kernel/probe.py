"""What this host offers to each layer, asked without changing anything: for `agentsh-net doctor`.

Each probe says what it found, why that is not enough where it is not, and the command that mends it.
"""

from __future__ import annotations

import errno
import importlib.util
import os
import platform
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agentsh_net import capabilities
from agentsh_net.core.abi import sock_diag
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import attachment, headers, loader, probe_source, syscall
from agentsh_net.kernel.cgroups import cgroup, own_cgroups
from agentsh_net.kernel.distribution import absent
from agentsh_net.kernel.netlink import SOCK_DIAG, Netlink
from agentsh_net.kernel.nft import nftables
from agentsh_net.kernel.sockets.diag import UNLISTED, destroy, listener, look_up
from agentsh_net.kernel.sockets.sweep import REMEDY as SWEEP_REMEDY

# The probes' helpers and the ring buffer came with Linux 5.8.
_OLDEST_KERNEL = (5, 8)


@dataclass(frozen=True, slots=True)
class Probe:
    """One thing that a layer needs. `reason` and `remedy` are empty where it is there."""

    layer: str  # ebpf | nftables | sweep | cgroups
    usable: bool
    detail: str
    reason: str = ""
    remedy: str = ""


def probe(bpf_loader: str = "auto") -> list[Probe]:
    """Return every probe, in the order in which the layers need them. `bpf_loader` is `network.bpf_loader`."""
    sessions = _attempt(own_cgroups.LAYER, "cgroups of sessions and of the proxy", own_cgroups.possible)
    return [*_ebpf(bpf_loader), *_nftables(), _sweep(), sessions]


def _ebpf(bpf_loader: str) -> Iterator[Probe]:
    yield _kernel(os.uname().release)
    yield _privilege("ebpf", ("CAP_BPF", "CAP_NET_ADMIN", "CAP_SYS_ADMIN"))
    yield _attempt("ebpf", "cgroup v2 hierarchy", lambda: f"cgroup v2 at {cgroup.root()}")
    yield _attempt("ebpf", "cgroup programs", _cgroup_programs)
    yield _attempt("ebpf", "attachment", lambda: f"attachment: {attachment.foreseen(cgroup.root())}")
    yield from _probes(bpf_loader)


def _probes(bpf_loader: str) -> Iterator[Probe]:
    """Yield what can load the probes. Of two ways one is enough: what only the other needs is no fault."""
    if bpf_loader == "bcc":
        yield from _compiler()
        return
    prebuilt = _attempt("ebpf", "prebuilt probes", _prebuilt)
    if prebuilt.usable:
        yield prebuilt
        if bpf_loader == "auto":
            yield Probe("ebpf", usable=True, detail=_fallback())
        return
    compiler = list(_compiler())
    if bpf_loader == "auto" and all(found.usable for found in (*compiler, _privilege("ebpf", ("CAP_BPF",)))):
        yield Probe(
            "ebpf", usable=True, detail=f"no prebuilt probes ({_first_line(prebuilt.reason)}), but BCC"
        )
    else:
        yield prebuilt
    if bpf_loader == "auto":
        yield from compiler


def _prebuilt() -> str:
    """Load them and let go of them: nothing is attached, and nothing stays."""
    loaded = loader.load_prebuilt()
    loaded.close()
    return f"the kernel takes the probes, {loaded.how}"


def _compiler() -> Iterator[Probe]:
    yield _bcc()
    yield _attempt("ebpf", "headers for BCC", _headers)


def _fallback() -> str:
    missing = [found.reason for found in _compiler() if not found.usable]
    if missing:
        return f"no BCC to fall back on, and none needed: {', '.join(map(_first_line, missing))}"
    return "BCC to fall back on"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _nftables() -> Iterator[Probe]:
    yield _privilege("nftables", ("CAP_NET_ADMIN",))
    if importlib.util.find_spec("nftables") is None:
        reason, remedy = absent("python3-nftables", "nftables")
        yield Probe("nftables", usable=False, detail=reason, reason=reason, remedy=remedy)
        return
    yield Probe("nftables", usable=True, detail="python3-nftables")
    yield _attempt("nftables", "nf_tables in the kernel", _nf_tables)


def _kernel(release: str) -> Probe:
    numbers = tuple(int(n) for n in re.findall(r"\d+", release)[:2])
    if numbers >= _OLDEST_KERNEL:
        return Probe("ebpf", usable=True, detail=f"Linux {release}")
    wanted = ".".join(map(str, _OLDEST_KERNEL))
    reason = f"Linux {release} is older than {wanted}"
    return Probe(
        "ebpf", usable=False, detail=reason, reason=reason, remedy="sudo apt full-upgrade, then reboot"
    )


def _privilege(layer: str, wanted: tuple[str, ...]) -> Probe:
    held = capabilities.effective()
    lacking = [name for name in wanted if not capabilities.has(held, name)]
    if not lacking:
        return Probe(layer, usable=True, detail=f"has {', '.join(wanted)}")
    reason = f"lacks {', '.join(lacking)}"
    remedy = "run as root (sudo)" if os.geteuid() else "give the container or the unit that capability"
    return Probe(layer, usable=False, detail=reason, reason=reason, remedy=remedy)


def _bcc() -> Probe:
    if importlib.util.find_spec("bcc") is None:
        reason, remedy = absent("python3-bpfcc", "bcc")
        return Probe("ebpf", usable=False, detail=reason, reason=reason, remedy=remedy)
    try:
        compiler = importlib.util.find_spec("bcc.libbcc")  # imports bcc
    except (ImportError, OSError) as error:
        reason = f"python3-bpfcc cannot be loaded: {error}"
        remedy = "sudo apt install --reinstall python3-bpfcc libbpfcc libbpf1"
        return Probe("ebpf", usable=False, detail=reason, reason=reason, remedy=remedy)
    if compiler is None:
        reason = "a module named bcc is there, but it is not the BPF compiler (PyPI's bcc is another project)"
        return Probe(
            "ebpf", usable=False, detail=reason, reason=reason, remedy=f"pip uninstall bcc; {loader.REMEDY}"
        )
    return Probe("ebpf", usable=True, detail="python3-bpfcc")


def _headers() -> str:
    with tempfile.TemporaryDirectory(prefix="agentsh-net-") as scratch:
        names = [tree.name for tree in headers.candidates(probe_source.directory(), Path(scratch))]
    if not names:
        raise KernelError(
            "no headers of any kernel", remedy="sudo apt install linux-headers-$(dpkg --print-architecture)"
        )
    return f"headers: {', '.join(names)}"


def _cgroup_programs() -> str:
    descriptor = os.open(cgroup.root(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        count = len(syscall.attached(descriptor, syscall.CONNECT4))
    except OSError as error:
        remedy = (
            "run as root, with CAP_NET_ADMIN"
            if error.errno == errno.EPERM
            else "a kernel with CONFIG_CGROUP_BPF"
        )
        raise KernelError(f"cgroup programs cannot be queried: {error.strerror}", remedy=remedy) from error
    finally:
        os.close(descriptor)
    return f"cgroup/connect hooks on {platform.machine()}, programs attached now: {count}"


def _nf_tables() -> str:
    table = nftables.Nftables(0)
    try:
        plain = table.why_plain()
    finally:
        table.close(remove=False)
    if plain:
        return f"nf_tables; tables cannot be owned: {plain}; what root takes away is put back"
    return "nf_tables; tables can be owned: nobody but the daemon can change them"


def _sweep() -> Probe:
    """Have a socket of our own destroyed: one that is not there gets the same answer from a kernel that lists no sockets."""
    privilege = _privilege("sweep", ("CAP_NET_ADMIN",))
    if not privilege.usable:
        return privilege
    try:
        return Probe("sweep", usable=True, detail=_destroyed())
    except OSError as error:
        remedy = "run as root (sudo)" if error.errno == errno.EPERM else SWEEP_REMEDY
        reason = f"SOCK_DESTROY: {error.strerror}"
    except KernelError as error:
        reason, remedy = str(error), error.remedy or SWEEP_REMEDY
    return Probe("sweep", usable=False, detail=reason, reason=reason, remedy=remedy)


def _destroyed() -> str:
    with listener() as ends, Netlink(SOCK_DIAG) as connection:
        found = look_up(connection, ends)
        if found is None:
            raise UNLISTED
        if not destroy(connection, sock_diag.destruction(found)):
            raise KernelError("SOCK_DESTROY destroys nothing")
    return "SOCK_DESTROY"


def _attempt(layer: str, what: str, look: Callable[[], str]) -> Probe:
    try:
        return Probe(layer, usable=True, detail=look())
    except KernelError as error:
        return Probe(layer, usable=False, detail=what, reason=str(error), remedy=error.remedy)
    except OSError as error:
        return Probe(
            layer, usable=False, detail=what, reason=f"{what}: {error.strerror}", remedy="run as root (sudo)"
        )
