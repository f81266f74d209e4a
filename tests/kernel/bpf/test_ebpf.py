"""The eBPF plane refuses at once and records who; whatever happens to its owner, what was refused stays refused."""

from __future__ import annotations

import errno
import os
import select
import socket
import struct
import threading
import time
from functools import partial
from pathlib import Path

import pytest
from netns import box
from netns.scene import at, attempt, listening, outcome, plan

from agentsh_net.core.abi import sieve, wire
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.kernel_plan import diff
from agentsh_net.core.network.plane import Fate, Rule
from agentsh_net.kernel.bpf import ebpf, loader, syscall
from agentsh_net.kernel.bpf.attachment import detach_ours, ours
from agentsh_net.kernel.bpf.ebpf import Ebpf
from agentsh_net.kernel.bpf.probe_source import PROGRAMS

pytestmark = pytest.mark.kernel

ROOT = Path("/sys/fs/cgroup")
BAD = plan(1, deny=(at("10.99.0.2"), at("fd00:99::2")), tag=(at("10.99.0.3", 443),))


# What the programs do is tested of both makes of them; what the plane does with them, of those that it takes by itself.
BOTH_MAKES = pytest.mark.parametrize(
    "make", ["prebuilt", pytest.param("bcc", marks=pytest.mark.bcc)], ids=lambda make: make
)


def started(wanted: object, make: str = "auto") -> Ebpf:
    plane = Ebpf(ROOT, partial(loader.load, make))
    plane.start(wanted)
    return plane


@BOTH_MAKES
def test_a_denied_connect_fails_with_eperm_on_every_port_and_in_every_spelling(make: str) -> None:
    def inside() -> list[str]:
        there = box.there()
        _servers = [listening(there, a) for a in ("10.99.0.2", "fd00:99::2")]
        started(BAD, make)
        spellings = ["10.99.0.2", "fd00:99::2", "::ffff:10.99.0.2", "64:ff9b::10.99.0.2", "2002:a63:2::1"]
        results = [attempt(a) for a in spellings]
        return [*results, attempt("10.99.0.2", 1), attempt("10.99.0.2", kind=socket.SOCK_DGRAM)]

    assert set(box.in_box(inside)) == {"EPERM"}


@BOTH_MAKES
def test_a_record_says_who_where_and_what_the_kernel_knows_of_the_socket(make: str) -> None:
    def inside() -> tuple[list[wire.Record], int]:
        box.there()
        plane = started(BAD, make)
        child = os.fork()
        if child == 0:
            Path("/proc/self/comm").write_text("an agent")
            os.setresuid(1234, 1234, 1234)
            attempt("::ffff:10.99.0.2")
            os._exit(0)
        os.waitpid(child, 0)
        return plane.records(), child, os.stat(ROOT).st_ino

    (record,), child, cgroup = box.in_box(inside)
    assert (record.pid, record.tid, record.uid, record.comm) == (child, child, 1234, "an agent")
    assert (record.fate, record.hook, record.family, record.port, record.protocol) == (
        Fate.DENY,
        "connect6",
        10,
        443,
        6,
    )
    assert (record.address, record.generation, record.observed) == (at("10.99.0.2").address, 1, False)
    assert record.cgroup_id == cgroup
    assert record.netns_cookie > 0
    assert record.socket_cookie > 0


@pytest.mark.parametrize(
    ("family", "address", "hook"),
    [(socket.AF_INET, "10.99.0.2", "sendmsg4"), (socket.AF_INET6, "fd00:99::2", "sendmsg6"), (socket.AF_INET6, "::ffff:10.99.0.2", "sendmsg4")],
    ids=["v4", "v6", "mapped"],
)  # fmt: skip
@BOTH_MAKES
def test_a_datagram_without_connect_is_refused(family: int, address: str, hook: str, make: str) -> None:
    def inside() -> tuple[str, list[str], list[int]]:
        box.there()
        plane = started(BAD, make)
        with socket.socket(family, socket.SOCK_DGRAM) as datagrams:
            result = outcome(lambda: datagrams.sendto(b"x", (address, 53)))
        found = plane.records()
        return result, [r.hook for r in found], [r.protocol for r in found]

    result, hooks, protocols = box.in_box(inside)
    assert (result, protocols) == ("EPERM", [17])
    # Kernels differ in which hook a mapped address takes; none takes no hook.
    assert hooks in ([hook], ["sendmsg6"])


@BOTH_MAKES
def test_a_datagram_socket_connected_to_an_allowed_peer_cannot_send_to_a_denied_one(make: str) -> None:
    def inside() -> tuple[str, str]:
        box.there()
        started(BAD, make)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as datagrams:
            datagrams.connect(("10.99.0.3", 53))
            return outcome(lambda: datagrams.send(b"x")), outcome(
                lambda: datagrams.sendto(b"x", ("10.99.0.2", 53))
            )

    assert box.in_box(inside) == ("connected", "EPERM")


@BOTH_MAKES
def test_an_allowed_server_is_recorded_at_its_port_and_not_at_another(make: str) -> None:
    def inside() -> tuple[list[str], list[tuple[str, int]]]:
        there = box.there()
        servers = [listening(there, "10.99.0.3"), listening(there, "10.99.0.3", 80)]
        plane = started(BAD, make)
        results = [attempt("10.99.0.3", server.getsockname()[1]) for server in servers]
        return results, [(r.fate, r.port) for r in plane.records()]

    assert box.in_box(inside) == (["connected", "connected"], [(Fate.TAG, 443)])


@BOTH_MAKES
def test_denial_wins_over_a_tag_of_the_same_address(make: str) -> None:
    def inside() -> str:
        box.there()
        started(plan(deny=(at("10.99.0.2", 443),), tag=(at("10.99.0.2"),)), make)
        return attempt("10.99.0.2")

    assert box.in_box(inside) == "EPERM"


@BOTH_MAKES
def test_a_full_ring_loses_records_and_counts_them_and_refuses_all_the_same(make: str) -> None:
    def inside() -> tuple[set[str], int, int, int]:
        box.there()
        plane = started(BAD, make)
        results = {attempt("10.99.0.2") for _ in range(15_000)}
        found = 0
        while records := plane.records():
            found += len(records)
        status = plane.status(BAD)
        return results, found, status.lost, status.denied

    results, found, lost, denied = box.in_box(inside)
    assert results == {"EPERM"}
    assert denied == 15_000
    assert lost > 0
    assert found + lost == denied


@BOTH_MAKES
def test_refused_connects_come_no_faster_than_their_pace_on_a_cpu(make: str) -> None:
    """The rest of its time goes by where nobody else has to wait for what the kernel does with the sockets."""
    pace, times = 32e-6, 500  # AGENTSH_PACE_NS; twice the time that it takes without one

    def inside() -> float:
        box.there()
        started(BAD, make)
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        began = time.monotonic()
        for _ in range(times):
            with socket.socket() as client:
                assert client.connect_ex(("10.99.0.2", 443)) == errno.EPERM
        return time.monotonic() - began

    # The clock is looked at so many times and no more: a quick one shortens the pause.
    assert box.in_box(inside) >= (times - 1) * pace * 2 / 3


def test_the_ring_is_readable_by_select_when_there_is_a_record() -> None:
    def inside() -> tuple[bool, bool]:
        box.there()
        plane = started(BAD)
        before = bool(select.select([plane], [], [], 0)[0])
        attempt("10.99.0.2")
        return before, bool(select.select([plane], [], [], 5)[0])

    assert box.in_box(inside) == (False, True)


def test_rules_are_added_and_deleted_in_place() -> None:
    def inside() -> tuple[list[str], set[object]]:
        there = box.there()
        _servers = [listening(there, a) for a in ("10.99.0.2", "10.99.0.3")]
        plane = started(BAD)
        other = plan(2, deny=(at("10.99.0.3"),))
        step = diff(BAD, other)
        plane.add(other, step)
        results = [attempt("10.99.0.2"), attempt("10.99.0.3")]
        plane.delete(other, step)
        results += [attempt("10.99.0.2"), attempt("10.99.0.3")]
        return results, set(plane.rules())

    assert box.in_box(inside) == (["EPERM", "EPERM", "connected", "EPERM"], {at("10.99.0.3")})


def test_a_replacement_takes_over_without_a_gap() -> None:
    def inside() -> tuple[set[str], int, str]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        plane = started(BAD)
        results: set[str] = set()
        stop = threading.Event()

        def keep_trying() -> None:
            while not stop.is_set():
                results.add(attempt("10.99.0.2"))

        thread = threading.Thread(target=keep_trying)
        thread.start()
        for _ in range(5):
            successor = started(BAD)
            plane.close(remove=False)
            plane = successor
        stop.set()
        thread.join()
        cgroup = os.open(ROOT, os.O_RDONLY)
        return results, len(ours(cgroup)), plane.status(BAD).reason

    assert box.in_box(inside) == ({"EPERM"}, len(PROGRAMS), "")


@pytest.mark.bcc
@pytest.mark.parametrize("makes", [("bcc", "prebuilt"), ("prebuilt", "bcc")], ids=" to ".join)
def test_an_upgrade_from_one_make_to_the_other_is_without_a_gap(makes: tuple[str, str]) -> None:
    def inside() -> tuple[set[str], int, str]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        old = started(BAD, makes[0])
        results: set[str] = set()
        stop = threading.Event()

        def keep_trying() -> None:
            while True:
                results.add(attempt("10.99.0.2"))
                if stop.is_set():
                    return

        thread = threading.Thread(target=keep_trying)
        thread.start()
        new = started(BAD, makes[1])
        old.close(remove=False)
        stop.set()
        thread.join()
        cgroup = os.open(ROOT, os.O_RDONLY)
        return results, len(ours(cgroup)), new.status(BAD).detail

    results, attached, detail = box.in_box(inside)
    assert (results, attached) == ({"EPERM"}, len(PROGRAMS))
    assert makes[1] in detail


def test_what_a_killed_owner_left_keeps_refusing_and_is_taken_over() -> None:
    def inside() -> tuple[str, int, int, str, int]:
        there = box.there()
        _server = listening(there, "10.99.0.2")
        reader, writer = os.pipe()
        owner = os.fork()
        if owner == 0:
            started(BAD)
            os.write(writer, b"ready")
            threading.Event().wait()
        os.read(reader, 5)
        box.kill(owner)
        orphaned = attempt("10.99.0.2")
        cgroup = os.open(ROOT, os.O_RDONLY)
        left = len(ours(cgroup))
        successor = started(plan(2, deny=(at("10.99.0.2"),)))
        taken = len(ours(cgroup))
        successor.close(remove=True)
        return orphaned, left, taken, attempt("10.99.0.2"), len(ours(cgroup))

    assert box.in_box(inside) == ("EPERM", len(PROGRAMS), len(PROGRAMS), "connected", 0)


def test_letting_go_without_removal_leaves_it_enforcing() -> None:
    def inside() -> str:
        box.there()
        started(BAD).close(remove=False)
        return attempt("10.99.0.2")

    assert box.in_box(inside) == "EPERM"


def test_programs_of_others_are_neither_listed_nor_detached() -> None:
    def inside() -> tuple[int, int, int]:
        plane = started(BAD)
        cgroup = os.open(ROOT, os.O_RDONLY)
        stranger = foreign_program()
        syscall.attach(cgroup, stranger, syscall.CONNECT4)
        listed = len(ours(cgroup))
        detached = detach_ours(cgroup, keep=set())
        plane.close(remove=False)
        return listed, detached, len(syscall.attached(cgroup, syscall.CONNECT4))

    assert box.in_box(inside) == (len(PROGRAMS), len(PROGRAMS), 1)


def foreign_program() -> int:
    """Load `return 1` for cgroup/connect4 under another's name."""
    code = bytes.fromhex("b700000001000000 9500000000000000")
    kind, attach_type = syscall.CGROUP_SOCK_ADDR, syscall.CONNECT4
    return syscall.load_program("stranger", kind, attach_type, code=code, licence="GPL")


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_a_detached_program_is_seen_and_put_back(name: str) -> None:
    def inside() -> tuple[bool, str, bool]:
        plane = started(BAD)
        cgroup = os.open(ROOT, os.O_RDONLY)
        syscall.detach(cgroup, plane._loaded.programs[name], PROGRAMS[name])
        status = plane.status(BAD)
        plane.start(BAD)
        return status.in_force, status.reason, plane.status(BAD).in_force

    assert box.in_box(inside) == (False, f"detached: {name} (at /sys/fs/cgroup)", True)


def test_a_rule_that_somebody_deleted_is_seen_and_put_back() -> None:
    def inside() -> tuple[str, bool, bool]:
        plane = started(BAD)
        syscall.delete_all(plane._loaded.maps["rules"], [wire.encode_key(at("10.99.0.2"))])
        reason = plane.status(BAD).reason
        plane.restore(BAD)
        return reason, plane.status(BAD).in_force, set(plane.rules()) == set(BAD.rules)

    assert box.in_box(inside) == ("2 rules in the kernel, 3 in the plan", True, True)


@pytest.mark.parametrize(
    ("table", "key", "value", "reason"),
    [
        (
            "rules",
            wire.encode_key(at("10.99.0.2")),
            wire.encode_rule(Rule(Fate.TAG, ("good",))),
            "other rules",
        ),
        ("sieve", struct.pack("=I", sieve.place(at("10.99.0.2").address) >> 5), bytes(8), "sieve"),
        ("config", bytes(4), wire.encode_config(generation=1, enforce=False), "switch"),
        ("config", bytes(4), wire.encode_config(generation=2, enforce=True), "switch"),
    ],
    ids=["a fate", "the sieve", "enforcement", "the generation"],
)
def test_a_map_that_somebody_wrote_into_is_seen_and_put_back(
    table: str, key: bytes, value: bytes, reason: str
) -> None:
    def inside() -> tuple[str, bool, str]:
        box.there()
        plane = started(BAD)
        syscall.update(plane._loaded.maps[table], key, value)
        before = plane.status(BAD)
        plane.restore(BAD)
        return before.reason, before.in_force or plane.status(BAD).in_force, attempt("10.99.0.2")

    said, mended, result = box.in_box(inside)
    assert reason in said
    assert (mended, result) == (True, "EPERM")


def test_a_map_that_somebody_froze_refuses_the_new_policy_keeps_the_old_and_says_what_mends_it() -> None:
    def inside() -> tuple[str, str, str]:
        there = box.there()
        _servers = [listening(there, a) for a in ("10.99.0.2", "10.99.0.4")]
        plane = started(BAD)
        syscall.call(22, struct.pack("=I", plane._loaded.maps["rules"]), "MAP_FREEZE")
        wider = plan(2, deny=(at("10.99.0.2"), at("10.99.0.4")))
        with pytest.raises(KernelError) as caught:
            plane.add(wider, diff(BAD, wider))
        refused = attempt("10.99.0.2")
        plane.close(remove=False)
        started(wider)
        return caught.value.remedy, refused, attempt("10.99.0.4")

    remedy, before, after = box.in_box(inside)
    assert remedy.startswith("restart agentsh-net: somebody froze its maps (rules)")
    assert (before, after) == ("EPERM", "EPERM")


def test_bits_that_no_rule_needs_any_more_go_when_they_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ebpf, "_MOST_STALE", 2)

    def inside() -> tuple[list[int], bool]:
        plane = started(BAD)
        before, bits = BAD, []
        for wanted in (plan(2, deny=(at("10.99.0.2"),)), plan(3, deny=(at("10.99.0.7"),))):
            step = diff(before, wanted)
            plane.add(wanted, step)
            plane.delete(wanted, step)
            before = wanted
            bits.append(int.from_bytes(plane._contents.sieve(), "little").bit_count())
        return bits, plane.status(before).in_force

    assert box.in_box(inside) == ([3, 1], True)


def test_a_cgroup_that_forbids_others_is_said_and_nothing_of_ours_stays() -> None:
    def inside() -> tuple[str, int]:
        cgroup = os.open(ROOT, os.O_RDONLY)
        # Attached without BPF_F_ALLOW_MULTI: an exclusive program.
        syscall.call(8, struct.pack("=IIII", cgroup, foreign_program(), syscall.CONNECT4, 0), "PROG_ATTACH")
        plane = Ebpf(ROOT)
        try:
            plane.start(BAD)
        except KernelError as error:
            return error.remedy, len(ours(cgroup))
        return "", -1

    remedy, left = box.in_box(inside)
    assert "bpftool cgroup tree" in remedy
    assert left == 0


@BOTH_MAKES
def test_an_unlisted_peer_is_reached_and_leaves_no_record(make: str) -> None:
    def inside() -> tuple[str, list[object]]:
        there = box.there()
        _server = listening(there, "10.99.0.4")
        plane = started(BAD, make)
        return attempt("10.99.0.4"), plane.records()

    assert box.in_box(inside) == ("connected", [])


def test_a_process_in_a_child_cgroup_or_another_network_namespace_is_refused_too() -> None:
    def inside() -> tuple[str, str]:
        there = box.there()
        started(BAD)
        (ROOT / "agent").mkdir()
        (ROOT / "agent/cgroup.procs").write_text(str(os.getpid()))
        deeper = attempt("10.99.0.2")
        elsewhere = there.call(lambda: attempt("10.99.0.2"))
        return deeper, elsewhere

    assert box.in_box(inside) == ("EPERM", "EPERM")
