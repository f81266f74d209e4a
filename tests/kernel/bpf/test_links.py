"""Links hold programs at a cgroup as long as a descriptor or a pin is there, and are found by whoever looks through them all."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from unittest.mock import Mock

import pytest
from netns import box

from agentsh_net.kernel.bpf import links, syscall
from agentsh_net.kernel.bpf.links import Link

pytestmark = pytest.mark.kernel

PASS = bytes.fromhex("b700000001000000 9500000000000000")


def linked() -> tuple[int, int, Link]:
    """Return a cgroup, a link to it, and what the kernel has to say of that."""
    kind, attach_type = syscall.CGROUP_SOCK_ADDR, syscall.CONNECT4
    program = syscall.load_program("linked", kind, attach_type, code=PASS, licence="GPL")
    cgroup = os.open("/sys/fs/cgroup", os.O_RDONLY)
    link = links.create(cgroup, program, attach_type)
    wanted = Link(syscall.program_info(program)[0], os.fstat(cgroup).st_ino, attach_type)
    return cgroup, link, wanted


def test_a_link_says_what_it_holds_where_until_it_is_detached() -> None:
    def inside() -> list[bool]:
        cgroup, link, wanted = linked()
        seen = [links.look(link) == wanted, syscall.attached(cgroup, 10) == [wanted.program_id]]
        links.detach(link)
        links.detach(link)
        return [*seen, links.look(link) == Link(wanted.program_id, 0, 10), not syscall.attached(cgroup, 10)]  # fmt: skip

    assert box.in_box(inside) == [True] * 4


def test_a_pin_holds_a_link_when_no_process_does_and_gives_it_back() -> None:
    def inside() -> list[bool]:
        box.mount_bpffs()
        cgroup, link, wanted = linked()
        pin = Path(box.BPFFS, "a_link")
        links.pin(pin, link)
        os.close(link)
        seen = [links.look(links.pinned(pin)) == wanted]
        pin.unlink()
        return [*seen, len(syscall.attached(cgroup, 10)) == 1]  # by the descriptor that `pinned` gave

    assert box.in_box(inside) == [True, True]


def test_every_link_of_the_kernel_is_seen_and_no_descriptor_stays() -> None:
    def inside() -> tuple[bool, bool]:
        _, link, wanted = linked()
        before = os.listdir("/proc/self/fd")
        seen = [links.look(fd) for fd in links.everywhere()]
        os.close(link)
        return wanted in seen, len(os.listdir("/proc/self/fd")) == len(before) - 1

    assert box.in_box(inside) == (True, True)


def test_a_kernel_that_can_detach_links_is_told_from_one_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    assert links.supported()
    for number, knows in ((errno.EINVAL, False), (errno.EPERM, True)):
        refusal = OSError(number, "bpf LINK_DETACH")
        monkeypatch.setattr(links, "call", Mock(side_effect=refusal))
        assert links.supported() is knows


def test_a_refusal_names_the_call_and_the_reason() -> None:
    with pytest.raises(OSError, match="OBJ_GET: No such file"):
        links.pinned(Path("/sys/fs/bpf/nothing"))
