"""Why there are no cgroups of ours is said where something hangs on them, and nobody is kept from a hierarchy in which nothing is ours."""

from __future__ import annotations

from pathlib import Path

import pytest
from netns import box
from netns.scene import at, plan

from agentsh_net.core.abi.sock_diag import Socket
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Fate, LayerStatus, Plan, Rule
from agentsh_net.kernel.cgroups.layer import CgroupLayer
from agentsh_net.kernel.cgroups.own_cgroups import OwnCgroups
from agentsh_net.kernel.claims import claim_hierarchy, hierarchy_holder

ROOT = Path("/sys/fs/cgroup")
PROVIDER = Plan(1, {at("10.99.0.2"): Rule(Fate.DENY, (), providers=("openai",))})
SESSIONS = Plan(1, sessions_only=True)


def nowhere(*, worker_uid: int | None = None, wanted: bool = True) -> CgroupLayer:
    return CgroupLayer(None, wanted=wanted, worker_uid=worker_uid)


def test_where_nothing_hangs_on_them_nothing_is_said() -> None:
    assert nowhere().status(plan(), knows_workers=True) == []
    assert nowhere().status(None, knows_workers=True) == []


def test_a_plan_for_sessions_alone_is_refused_with_the_reason() -> None:
    with pytest.raises(KernelError, match="no session can be told: no cgroup v2 hierarchy is mounted"):
        nowhere().require(SESSIONS)
    with pytest.raises(KernelError, match=r"network\.mode is off"):
        nowhere(wanted=False).require(SESSIONS)
    nowhere().require(PROVIDER)


def test_without_cgroups_the_proxy_is_exempt_by_its_user_or_the_layer_is_not_in_force() -> None:
    [by_user] = nowhere(worker_uid=1234).status(PROVIDER, knows_workers=True)
    assert (by_user.in_force, by_user.detail) == (True, "the proxy is exempt as uid 1234")
    [neither] = nowhere().status(PROVIDER, knows_workers=False)
    assert not neither.in_force
    assert "no cgroup v2" in neither.reason


def test_what_there_is_not_stands_for_nothing() -> None:
    layer = nowhere(worker_uid=7)
    assert layer.present(("a",)) == ()
    assert layer.sockets().worker_uid == 7
    assert layer.ids.sessions == 0


@pytest.mark.kernel
def test_a_rule_concerns_sockets_of_sessions_and_never_the_proxys() -> None:
    def inside() -> list[bool]:
        layer = CgroupLayer(ROOT, wanted=True, worker_uid=None)
        own = layer.own
        assert own is not None
        own.begin("s1")
        agents = (own.sessions / "s1.session").stat().st_ino
        deny, provider = Rule(Fate.DENY, ("evil",)), Rule(Fate.DENY, (), providers=("openai",))
        for_sessions, for_all = layer.concerned(SESSIONS), layer.concerned(PROVIDER)
        workers, root = own.ids.workers, 1
        return [
            for_sessions(deny, found(agents)),
            for_sessions(deny, found(root)),
            for_all(deny, found(root)),
            for_all(provider, found(agents)),
            for_all(provider, found(workers)),
        ]

    def found(cgroup_id: int) -> Socket:
        return Socket(**dict.fromkeys(Socket.__dataclass_fields__, 0) | {"cgroup_id": cgroup_id})

    assert box.in_box(inside) == [True, False, True, True, False]


@pytest.mark.kernel
def test_another_daemons_hierarchy_is_left_alone_and_named() -> None:
    def inside() -> tuple[str, bool, list[LayerStatus], bool]:
        first = CgroupLayer(ROOT, wanted=True, worker_uid=None)
        second = CgroupLayer(ROOT, wanted=True, worker_uid=None)
        second.close(remove=True)
        rows = second.status(PROVIDER, knows_workers=False)
        assert first.own is not None
        return str(second.taken), second.claimed, rows, first.own.why_not() == ""

    taken, claimed, [row], unharmed = box.in_box(inside)
    assert "another agentsh-net, process" in taken
    assert not claimed
    assert taken in row.reason
    assert unharmed


@pytest.mark.kernel
def test_a_hierarchy_in_which_nothing_is_ours_is_others_to_claim(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: OwnCgroups, _hierarchy: Path) -> None:
        raise KernelError("read-only")

    def inside() -> tuple[bool, bool]:
        monkeypatch.setattr(OwnCgroups, "__init__", refused)
        layer = CgroupLayer(ROOT, wanted=True, worker_uid=None)
        held = layer.claimed
        layer.leave_programs()
        return held, claim_hierarchy(ROOT) is not None

    assert box.in_box(inside) == (True, True)


@pytest.mark.kernel
def test_closing_gives_the_hierarchy_back() -> None:
    def inside() -> int | None:
        CgroupLayer(ROOT, wanted=True, worker_uid=None).close(remove=True)
        assert not (ROOT / "agentsh-net").exists()
        return hierarchy_holder(ROOT)

    assert box.in_box(inside) is None
