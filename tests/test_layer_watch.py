"""A layer that somebody takes away is noticed at the next look, told, and put back."""

from __future__ import annotations

import asyncio
import logging

import pytest
from fake_kernel import FakeKernel

from agentsh_net.core.audit.events import Event, EventsLost, LayerStateChanged
from agentsh_net.core.network.plane import LayerStatus, Plan
from agentsh_net.layer_watch import LOOK_EVERY, LayerWatch


@pytest.fixture
def kernel() -> FakeKernel:
    kernel = FakeKernel()
    kernel.apply(Plan())
    return kernel


def look(kernel: FakeKernel, times: int, between: list[tuple[str, object]]) -> tuple[list[Event], LayerWatch]:
    emitted: list[Event] = []
    watch = LayerWatch(kernel, emitted.append, logging.getLogger("test"))

    async def looks() -> None:
        for turn in range(times):
            await watch.look()
            if turn < len(between):
                setattr(kernel, *between[turn])

    asyncio.run(looks())
    return emitted, watch


def test_what_is_as_it_was_asked_for_is_no_news(kernel: FakeKernel) -> None:
    emitted, watch = look(kernel, 2, [])
    assert emitted == []
    assert [s.layer for s in watch.layers] == ["ebpf"]


def test_a_layer_taken_away_is_told_and_the_plan_put_back(kernel: FakeKernel) -> None:
    emitted, _ = look(kernel, 2, [("gone", True)])
    assert [(e.layer, e.state) for e in emitted if isinstance(e, LayerStateChanged)] == [
        ("ebpf", "not in force"),
        ("ebpf", "in force"),
    ]
    # The plan in force, whatever is being applied by others.
    assert (kernel.reasserted, len(kernel.plans)) == (1, 1)


def test_what_the_kernel_says_is_asked_and_not_remembered(kernel: FakeKernel) -> None:
    _, watch = look(kernel, 1, [])
    kernel.gone = True
    assert [s.in_force for s in watch.layers] == [True]
    assert [s.in_force for s in asyncio.run(watch.ask())] == [False]


def test_a_layer_that_cannot_be_put_back_stays_told(
    kernel: FakeKernel, caplog: pytest.LogCaptureFixture
) -> None:
    kernel.broken = "denied"
    emitted, watch = look(kernel, 3, [("gone", True)])
    assert [e.state for e in emitted if isinstance(e, LayerStateChanged)] == ["not in force"]
    assert not watch.layers[0].in_force
    assert "could not be put back" in caplog.text


def test_what_could_not_be_put_back_is_tried_again_and_told_once(
    kernel: FakeKernel, caplog: pytest.LogCaptureFixture
) -> None:
    kernel.broken = "denied"
    emitted, watch = look(kernel, 5, [("gone", True), ("gone", True), ("broken", "")])
    assert [e.state for e in emitted if isinstance(e, LayerStateChanged)] == ["not in force", "in force"]
    assert watch.layers[0].in_force
    assert caplog.text.count("could not be put back") == 1
    assert [r.levelname for r in caplog.records if "in force" in r.getMessage()] == ["ERROR"]


def test_what_was_put_back_and_cannot_be_another_time_is_told_again(
    kernel: FakeKernel, caplog: pytest.LogCaptureFixture
) -> None:
    lost: list[tuple[str, object]] = [("gone", True), ("broken", "")]
    kernel.broken = "denied"
    look(kernel, 6, [*lost, ("broken", "denied"), *lost])
    assert caplog.text.count("could not be put back") == 2


def test_a_layer_that_nobody_wants_is_no_news(kernel: FakeKernel) -> None:
    kernel.status = lambda: [LayerStatus("nftables", wanted=False, in_force=False)]  # type: ignore[method-assign]
    assert look(kernel, 2, [])[0] == []
    assert kernel.reasserted == 0


def test_a_layer_that_is_no_longer_told_of_is_not_put_back(kernel: FakeKernel) -> None:
    cgroups = LayerStatus("cgroups", wanted=False, in_force=True)
    told = [[*kernel.status(), cgroups], kernel.status(), kernel.status()]
    kernel.status = lambda: told.pop(0)  # type: ignore[method-assign]
    before = len(kernel.plans)
    emitted, watch = look(kernel, 3, [])
    assert (emitted, [s.layer for s in watch.layers], len(kernel.plans)) == ([], ["ebpf"], before)


def test_a_layer_that_never_came_up_is_told_once() -> None:
    kernel = FakeKernel()
    emitted, _ = look(kernel, 2, [])
    assert [e.type for e in emitted] == ["layer_state_changed"]
    assert kernel.reasserted == 0  # there is nothing to put back


def test_lost_records_are_counted_once(kernel: FakeKernel) -> None:
    emitted, _ = look(kernel, 3, [("lost", 7)])
    assert [(e.layer, e.lost) for e in emitted if isinstance(e, EventsLost)] == [("ebpf", 7)]


def test_a_layer_that_tells_nothing_is_told_once_and_so_is_that_it_tells_again(
    kernel: FakeKernel, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kernel.silent = "somebody else reads its log"
    emitted, _ = look(kernel, 4, [("lost", 0), ("silent", ""), ("lost", 0)])
    assert [(e.state, e.reason) for e in emitted if isinstance(e, LayerStateChanged)] == [
        ("in force", "somebody else reads its log"),
        ("in force", "its events are told from now on"),
    ]
    assert kernel.reasserted == 0
    assert caplog.text.count("its events are told from now on") == 1


def test_what_came_to_the_machine_is_taken_in_without_news(kernel: FakeKernel) -> None:
    emitted, _ = look(kernel, 3, [("behind", "devices +eth1")])
    assert emitted == []
    assert (kernel.behind, kernel.reasserted) == ("", 1)


def waited(kernel: FakeKernel, *, touch_after: float | None, took: float = 0.0) -> float:
    """Return how many seconds the watch waits until its next look."""
    watch = LayerWatch(kernel, lambda _event: None, logging.getLogger("test"))
    watch._took = took

    async def inside() -> float:
        loop = asyncio.get_running_loop()
        if touch_after is not None:
            loop.call_later(touch_after, setattr, kernel, "touched", True)
        began = loop.time()
        await watch.wait()
        return loop.time() - began

    return asyncio.run(inside())


def test_somebody_who_touches_a_layer_is_looked_after_at_once(kernel: FakeKernel) -> None:
    assert waited(kernel, touch_after=None) >= LOOK_EVERY
    assert waited(kernel, touch_after=0.05) < LOOK_EVERY / 2


def test_somebody_who_touches_layers_over_and_over_does_not_keep_us_busy(kernel: FakeKernel) -> None:
    assert waited(kernel, touch_after=0.0, took=0.05) >= 0.5


def test_a_layer_that_is_taken_away_again_while_it_is_put_back_is_put_back_again(kernel: FakeKernel) -> None:
    put_back = kernel.reassert

    def and_taken_away() -> None:
        put_back()
        kernel.gone = kernel.reasserted < 4

    kernel.reassert = and_taken_away  # type: ignore[method-assign] # a saboteur who is at it still
    emitted, watch = look(kernel, 5, [("gone", True)])
    assert [e.state for e in emitted if isinstance(e, LayerStateChanged)] == ["not in force", "in force"]
    assert watch.layers[0].in_force
