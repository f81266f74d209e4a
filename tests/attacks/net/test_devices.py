"""Row 12 on machines whose devices come and go: a packet socket is stopped on each of them, however many there are."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable

import pytest
from netns import box
from netns.packets import IP, frame, hardware_address, send_frame, udp, v4
from netns.scene import outcome
from netns.stage import BAD, BOTH, NFT, Row, Seen, Stage

pytestmark = pytest.mark.kernel

AGAIN = f"addr add {box.HERE_V4}/24 dev here"  # the tap's marker needs a way


def ip(*steps: str, pass_fds: tuple[int, ...] = ()) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(steps), text=True, check=True, pass_fds=pass_fds)


def renamed(stage: Stage) -> None:
    ip("link set here down", "link set here name uplink", "link set uplink up")
    put_back(stage)
    ip("link set uplink down", "link set uplink name here", "link set here up")


def lent(stage: Stage) -> None:
    """Into another network namespace, and back."""
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    away = box.new_namespace()
    ip(f"link set here netns /proc/self/fd/{away.fd}", pass_fds=(away.fd,))
    put_back(stage)
    away.call(lambda: ip(f"link set here netns /proc/self/fd/{home}", pass_fds=(home,)))
    ip("link set here up", AGAIN)


def replaced(stage: Stage) -> None:
    """By another one of the same name."""
    ip("link del here", "link add here type veth peer name there")
    ip(f"link set there netns /proc/self/fd/{stage.there.fd}", pass_fds=(stage.there.fd,))
    addresses = [f"addr add {address}/24 dev there" for address in box.THERE_V4]
    stage.there.call(lambda: ip(*addresses, "link set there up"))
    ip("link set here up", AGAIN)


def crowded(stage: Stage) -> None:
    ip(*(f"link add device{n} type bridge" for n in range(300)))


def put_back(stage: Stage) -> None:
    """Do what the daemon does as soon as it hears of something."""
    box.await_that(stage.kernel.disturbed)
    stage.kernel.reassert()


CHANGES: dict[str, Callable[[Stage], None]] = {
    "renamed": renamed,
    "lent": lent,
    "replaced": replaced,
    "one of many": crowded,
}
ATTACK = Row(lambda s: "", "udp", {"nftables": {"ENOBUFS"}}, open_on={"ebpf": "no hook sees a packet socket"})


def after(change: Callable[[Stage], None], layers: tuple[str, ...]) -> Seen:
    stage = Stage(layers)
    stage.kernel.disturbed()
    change(stage)
    put_back(stage)
    to = hardware_address(stage.there, "there")
    packet = frame(to, IP, v4(BAD, udp()))
    return stage.mount(lambda _: outcome(lambda: send_frame(packet, to)))


@pytest.mark.parametrize("layers", [NFT, BOTH], ids="+".join)
@pytest.mark.parametrize("name", CHANGES)
def test_a_frame_is_stopped_at_a_device_whatever_became_of_it(name: str, layers: tuple[str, ...]) -> None:
    ATTACK.check(box.in_box(after, CHANGES[name], layers), layers)


def among_many() -> tuple[int, list[str]]:
    """Have more devices than one chain may hang on when the planes start."""
    ip(*(f"link add device{n} type bridge" for n in range(300)))
    stage = Stage(NFT)
    to = hardware_address(stage.there, "there")
    packet = frame(to, IP, v4(BAD, udp()))
    seen = stage.mount(lambda _: outcome(lambda: send_frame(packet, to)))
    return seen.arrived, [event.action for event in seen.events]


def test_a_start_among_many_devices_stops_frames_at_each() -> None:
    assert box.in_box(among_many) == (0, ["block"])


def at_once() -> bool:
    """Return whether the next look at the layers is due as soon as a device comes."""
    stage = Stage(NFT)
    stage.kernel.disturbed()
    quiet = stage.kernel.disturbed()
    ip("link add late type bridge")
    return not quiet and stage.kernel.disturbed() and not stage.kernel.disturbed()


def test_a_device_that_comes_is_heard_at_once() -> None:
    assert box.in_box(at_once)
