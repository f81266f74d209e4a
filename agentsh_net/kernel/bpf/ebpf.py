"""The eBPF plane: the plan's rules in maps, our programs at the cgroup v2 root, their records out of a ring buffer.

A replacement is attached, filled and enforcing before its predecessor goes: whatever died, the kernel keeps refusing. How
the programs got into the kernel is loader.py's business.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from agentsh_net.core.abi import sieve, wire
from agentsh_net.core.errors import MORE_FILES, KernelError
from agentsh_net.core.network.kernel_plan import Diff
from agentsh_net.core.network.plane import Endpoint, Fate, LayerStatus, Name, Plan, Rule
from agentsh_net.kernel.bpf import attachment, loader, map_contents, streams, syscall
from agentsh_net.kernel.bpf.map_contents import MapContents
from agentsh_net.kernel.bpf.ring_buffer import RingBuffer

LAYER = "ebpf"
_LOG = logging.getLogger(__name__)
_ONLY = bytes(4)  # the one key of the config map
# Records handed out per call: some 1.5 ms of the caller's work with the store's, less than one tick of the scheduler, so that
# in a flood neither a reload nor a proxy worker on the same CPU waits for it (of 2048, a reload took 7 s). The rest waits in
# the ring.
_BATCH = 16
# Deleted rules leave their bits in the sieve, which cost look-ups in vain and nothing else: at 1.6% of its values it is
# written anew.
_MOST_STALE = 16_384


class Ebpf:
    """The loaded programs and maps. Nothing is refused before `start`."""

    def __init__(
        self,
        cgroup_root: Path,
        load: Callable[[], loader.Loaded] = loader.load,
        own: wire.OwnIds = wire.NO_CGROUPS,
    ) -> None:
        """Load programs and maps. `own` are the cgroups of ours. Raises KernelError."""
        self._root = cgroup_root
        self._own = own
        self._cgroup = os.open(cgroup_root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._cpus = syscall.possible_cpus()
        self._stale, self._filled = 0, False
        try:
            self._loaded = load()
            self._contents = MapContents(self._loaded.maps)
            try:
                records = self._loaded.maps["records"]
                # Asked, not assumed: BCC counts the ring in pages, which are not 4 KiB everywhere.
                self._ring = RingBuffer(records, syscall.map_entries(records))
                self._ids = {n: syscall.program_info(fd)[0] for n, fd in self._loaded.programs.items()}
                # No other daemon's: ids are not used again while their programs are there.
                self._pins = str(min(self._ids.values()))
                self._held = attachment.choose(cgroup_root, self._cgroup, self._loaded, self._pins)
            except OSError as error:
                self._loaded.close()
                raise KernelError(
                    f"the loaded programs are unusable: {error}", layer=LAYER, remedy="agentsh-net doctor"
                ) from error
        except KernelError:
            os.close(self._cgroup)
            raise

    def start(self, plan: Plan) -> None:
        """Fill the maps, attach, enforce; then let predecessors go. Raises KernelError with nothing of ours attached."""
        with _mapped("fill the maps"):
            self._configure(plan, enforce=False)
            self._name(plan.names)
            self._allow(plan)
            self._set(plan, plan.rules)
        try:
            with _mapped(f"attach at {self._root}"):
                self._attach()
                self._configure(plan, enforce=True)  # one write raises every hook at once
                self._succeed()
        except KernelError:
            self._detach()
            raise

    def add(self, plan: Plan, step: Diff) -> None:
        """Set the rules that `step` adds or changes, and the generation. Raises KernelError."""
        with self._written("add rules"):
            self._name(step.names)
            self._allow(plan)
            self._set(plan, step.adds)
            self._configure(plan, enforce=True)

    def delete(self, plan: Plan, step: Diff) -> None:
        """Delete the rules that `step` takes away; `plan` is what stays. Raises KernelError."""
        with self._written("delete rules"):
            self._delete(step.deletes)
            self._forget(step.forgotten)
            self._disallow(plan)
            self._stale += len(step.deletes)
            if self._stale > _MOST_STALE or (self._filled and plan.egress is None):
                self._tighten_sieve(plan)

    def restore(self, plan: Plan) -> None:
        """Make the maps hold exactly `plan`, whatever they hold, and attach what is not attached. Raises KernelError."""
        with self._written("restore the rules"):
            self._name(plan.names)
            self._allow(plan)
            self._set(plan, plan.rules)
            self._configure(plan, enforce=True)
            self._disallow(plan)
            self._delete([e for e in self.rules() if e not in plan.rules])
            kept = {wire.encode_name(n) for n in plan.names}
            self._forget_keys([key for key in self._contents.names() if key not in kept])
            self._tighten_sieve(plan)
        with _mapped(f"attach at {self._root}"):
            self._attach()
            self._succeed()

    def know(self, own: wire.OwnIds, plan: Plan) -> None:
        """Tell the programs that the cgroups of ours are these now. Raises KernelError."""
        self._own = own
        with self._written("tell the cgroups"):
            self._configure(plan, enforce=True)

    def rules(self) -> dict[Endpoint, int]:
        """Return what the kernel holds now: endpoint -> number of its fate."""
        pairs = self._contents.rules().items()
        return {wire.decode_key(key): wire.RULE.unpack(value)[0] for key, value in pairs}

    @property
    def streams(self) -> int:
        """The map with what is known of connections to shared endpoints, in their sockets."""
        return self._loaded.maps[streams.MAP]

    def fileno(self) -> int:
        """Return the descriptor that is readable while there are records."""
        return self._loaded.maps["records"]

    def records(self) -> list[wire.Record]:
        """Return what was recorded since the last call, a batch at most."""
        return [wire.decode(data) for data in self._ring.read(_BATCH)]

    def detached(self) -> bool:
        """Say whether a program of ours is not where it belongs; a kernel that does not answer counts as such."""
        try:
            return bool(self._held.lost())
        except OSError:
            return True

    def status(self, plan: Plan) -> LayerStatus:
        """Ask the kernel whether every program is attached, enforcing, and by `plan`'s rules alone."""
        try:
            held, reason = self._contents.look(plan)
            unheld = self._held.lost()
            reason = (unheld and f"{unheld} (at {self._root})") or reason or self._unconfigured(plan)
            denied, tagged, lost = self._counters()
            behind = attachment.behind(self._cgroup, {*self._ids.values()})
        except OSError as error:
            return LayerStatus(
                LAYER, wanted=True, in_force=False, reason=f"the kernel does not answer: {error}"
            )
        ids = " ".join(f"{name}={number}" for name, number in self._ids.items())
        return LayerStatus(
            LAYER,
            wanted=True,
            in_force=not reason,
            detail="; ".join(
                filter(None, (f"{ids} at {self._root}, {held} rules, {self._loaded.how}", behind))
            ),
            reason=reason,
            remedy="restart agentsh-net" if reason else "",
            denied=denied,
            tagged=tagged,
            lost=lost,
            attachment="" if unheld else self._held.describe(),
        )

    def close(self, *, remove: bool) -> None:
        """Let go; with `remove` every program of ours is detached first."""
        try:
            if remove:
                self._detach()
        finally:
            self._ring.close()
            self._held.close()
            self._loaded.close()
            os.close(self._cgroup)

    def _unconfigured(self, plan: Plan) -> str:
        config = syscall.lookup(self._loaded.maps["config"], _ONLY, wire.CONFIG.size)
        if config != self._switches(plan, enforce=True):
            return "the switch in the kernel is off, or of another policy"
        return ""

    def _attach(self) -> None:
        self._held = attachment.attach(self._held, self._cgroup, self._loaded.programs)

    def _succeed(self) -> None:
        """Let predecessors go, who may have held their programs the other way."""
        attachment.detach_ours(self._cgroup, keep=set(self._ids.values()))
        try:
            attachment.clear_pins(os.fstat(self._cgroup).st_ino, keep={self._pins})
        except OSError as error:
            _LOG.warning("pins that hold nothing any more cannot be removed: %s", error)

    def _set(self, plan: Plan, rules: Mapping[Endpoint, Rule]) -> None:
        words = sieve.from_bytes(self._contents.sieve())
        changed = sieve.mark(words, rules)
        if plan.egress is not None:
            self._filled = True
            changed |= sieve.fill(words)
        self._write_sieve(words, sorted(changed))
        keys = [wire.encode_key(e) for e in rules]
        values = [wire.encode_rule(rule) for rule in rules.values()]
        syscall.update_all(self._loaded.maps["rules"], keys, values)

    def _allow(self, plan: Plan) -> None:
        for key in map_contents.prefixes(plan):
            syscall.update(self._loaded.maps["prefixes"], key, wire.RULE.pack(wire.DECLARED))

    def _disallow(self, plan: Plan) -> None:
        wanted = map_contents.prefixes(plan)
        gone = [key for key in self._contents.prefixes() if key not in wanted]
        syscall.delete_all(self._loaded.maps["prefixes"], gone)

    def _delete(self, endpoints: Sequence[Endpoint]) -> None:
        syscall.delete_all(self._loaded.maps["rules"], [wire.encode_key(e) for e in endpoints])

    def _name(self, names: Mapping[Name, Fate]) -> None:
        keys = [wire.encode_name(n) for n in names]
        values = [wire.encode_fate(fate) for fate in names.values()]
        syscall.update_all(self._loaded.maps["names"], keys, values)

    def _forget(self, names: Sequence[Name]) -> None:
        self._forget_keys([wire.encode_name(n) for n in names])

    def _forget_keys(self, keys: Sequence[bytes]) -> None:
        syscall.delete_all(self._loaded.maps["names"], keys)

    def _write_sieve(self, words: array[int], numbers: Sequence[int]) -> None:
        keys = [struct.pack("=I", n) for n in numbers]
        values = [sieve.WORD.pack(words[n]) for n in numbers]
        syscall.update_all(self._loaded.maps["sieve"], keys, values)

    def _tighten_sieve(self, plan: Plan) -> None:
        """Clear the bits that no rule of `plan` needs."""
        self._write_sieve(sieve.build(plan.rules, every=plan.egress is not None), range(sieve.WORDS))
        self._stale, self._filled = 0, plan.egress is not None

    def _configure(self, plan: Plan, *, enforce: bool) -> None:
        syscall.update(self._loaded.maps["config"], _ONLY, self._switches(plan, enforce=enforce))

    def _switches(self, plan: Plan, *, enforce: bool) -> bytes:
        return wire.encode_config(
            generation=plan.generation,
            enforce=enforce,
            sessions_only=plan.sessions_only,
            egress=plan.egress,
            own=self._own,
        )

    def _counters(self) -> tuple[int, int, int]:
        """Return denied, tagged and lost, summed over the CPUs."""
        sums = []
        for slot in (wire.DENIED, wire.TAGGED, wire.LOST):
            size = wire.COUNTER.size * self._cpus
            values = syscall.lookup(self._loaded.maps["counters"], struct.pack("=I", slot), size)
            sums.append(sum(value for (value,) in wire.COUNTER.iter_unpack(values)))
        return sums[0], sums[1], sums[2]

    @contextlib.contextmanager
    def _written(self, what: str) -> Iterator[None]:
        """As `_mapped`, of maps: nobody but root can have frozen one, and then its programs go on by what it held."""
        try:
            with _mapped(what):
                yield
        except KernelError as error:
            frozen = [name for name, fd in self._loaded.maps.items() if syscall.is_frozen(fd)]
            if frozen:
                error.remedy = f"restart agentsh-net: somebody froze its maps ({', '.join(frozen)}), which nothing undoes"
            raise

    def _detach(self) -> None:
        with _mapped("detach"):
            self._held.detach()


@contextlib.contextmanager
def _mapped(what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise KernelError(f"cannot {what}: {error.strerror}", layer=LAYER, remedy=_remedy(error)) from error


def _remedy(error: OSError) -> str:
    match error.errno:
        case errno.EPERM:
            return "run as root; where another program forbids others on the cgroup root (`bpftool cgroup tree`), detach it"
        case errno.E2BIG | errno.ENOSPC | errno.ENOMEM:
            return f"the policy has more than {wire.MAX_RULES} endpoints, or memory is short"
        case errno.EMFILE | errno.ENFILE:
            return MORE_FILES
        case _:
            return "agentsh-net doctor"
