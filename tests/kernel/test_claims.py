"""A hierarchy and a network namespace are one daemon's: the second is told whose, a killed one's are free, a stranger keeps nobody out."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from netns import box, tampering

from agentsh_net.kernel import claims
from agentsh_net.kernel.claims import (
    TakenError,
    claim_hierarchy,
    claim_namespace,
    hierarchy_holder,
    namespace_holder,
)

pytestmark = pytest.mark.kernel

ROOT = Path("/sys/fs/cgroup")
HOLD = """
import os, sys
from pathlib import Path
from agentsh_net.kernel import claims
claim = {what}
print(os.getpid(), flush=True)
sys.stdin.read()
"""
HIERARCHY, NAMESPACE = "claims.claim_hierarchy(Path('/sys/fs/cgroup'))", "claims.claim_namespace()"
LOCK = "import ctypes, fcntl; ctypes.CDLL(None).prctl(4, 0); claim = os.open('/sys/fs/cgroup', os.O_RDONLY); fcntl.flock(claim, fcntl.LOCK_EX)"


@contextmanager
def elsewhere(what: str, user: int = 0) -> Iterator[subprocess.Popen[str]]:
    """Another process that does this and lives on."""
    command = [sys.executable, "-c", HOLD.format(what=what)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, user=user
    ) as process:
        assert process.stdout is not None
        assert int(process.stdout.readline()) == process.pid
        yield process
        process.kill()


def refusal(claim: Callable[[], object]) -> tuple[int, str, str]:
    with pytest.raises(TakenError) as taken:
        claim()
    return taken.value.pid, str(taken.value), taken.value.remedy


CLAIMS: dict[str, tuple[str, Callable[[], object], Callable[[], int | None]]] = {
    "hierarchy": (HIERARCHY, lambda: claim_hierarchy(ROOT), lambda: hierarchy_holder(ROOT)),
    "namespace": (NAMESPACE, claim_namespace, namespace_holder),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_the_second_is_refused_by_the_pid_of_the_first_until_that_is_killed(name: str) -> None:
    there, here, holder = CLAIMS[name]

    def inside() -> tuple[int, int | None, tuple[int, str, str], int | None, bool, int | None]:
        with elsewhere(there) as other:
            held, refused = holder(), refusal(here)
            other.kill()
            other.wait()
            freed, claim = holder(), here()
            return other.pid, held, refused, freed, claim is not None, holder()

    pid, held, (named, said, remedy), freed, taken, ours = box.in_box(inside)
    assert pid == held == named
    assert f"process {pid}, enforces in" in said
    assert f"sudo kill {pid}" in remedy
    assert freed is None
    assert taken
    assert ours


def test_what_is_released_is_free() -> None:
    def inside() -> list[int | None]:
        for claim in (claim_hierarchy(ROOT), claim_namespace()):
            assert claim is not None
            claim.release()
        return [hierarchy_holder(ROOT), namespace_holder()]

    assert box.in_box(inside) == [None, None]


def test_other_namespaces_and_hierarchies_are_not_concerned() -> None:
    def inside() -> bool:
        (ROOT / "container").mkdir()
        first = claim_hierarchy(ROOT), claim_namespace()
        second = claim_hierarchy(ROOT / "container"), box.new_namespace().call(claim_namespace)
        return all((*first, *second))

    assert box.in_box(inside)


def test_a_stranger_who_locks_the_hierarchy_keeps_no_daemon_from_starting() -> None:
    """Whoever may open the directory may lock it: an agent must not be able to keep enforcement away by that, not even one
    that hides behind PR_SET_DUMPABLE, which makes what is in its folder in /proc root's."""

    def inside() -> tuple[int | None, object]:
        with elsewhere(f"0; {LOCK}", user=65534):
            return hierarchy_holder(ROOT), claim_hierarchy(ROOT)

    assert box.in_box(inside) == (None, None)


def test_a_plain_table_of_that_name_is_nobodys_claim() -> None:
    def inside() -> tuple[bool, str]:
        tampering.nft(f"add table inet {claims.TABLE}")
        assert namespace_holder() is None
        claim = claim_namespace()
        return claim is not None, tampering.nft(f"delete table inet {claims.TABLE}")

    taken, said = box.in_box(inside)
    assert taken
    assert "Operation not permitted" in said


def test_without_privilege_there_is_no_claim_and_no_error() -> None:
    def inside() -> int:
        code = "from agentsh_net.kernel import claims; assert claims.claim_namespace() is None"
        return subprocess.run([sys.executable, "-c", code], user=65534, check=False).returncode

    assert box.in_box(inside) == 0


def test_whoever_cannot_be_seen_is_said_to_be_elsewhere() -> None:
    error = TakenError("this network namespace", 0, layer="nftables")
    assert "another container" in str(error)
    assert "kill" not in error.remedy


def test_one_that_is_dying_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def inside() -> bool:
        held = claim_hierarchy(ROOT)
        assert held is not None
        monkeypatch.setattr(time, "sleep", lambda _: held.release() if hierarchy_known() else None)
        return claim_hierarchy(ROOT) is not None

    def hierarchy_known() -> bool:
        known.append(os.getpid())
        return len(known) == 2

    known: list[int] = []
    assert box.in_box(inside)
