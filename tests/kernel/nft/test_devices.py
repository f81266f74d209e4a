"""The devices are those of this namespace as they are now, listed again only where the kernel told of a change."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest
from netns import box

from agentsh_net.kernel.nft import devices
from agentsh_net.kernel.nft.devices import Devices

pytestmark = pytest.mark.kernel


def ip(step: str) -> None:
    subprocess.run(["ip", *step.split()], check=True)


def told() -> list[Any]:
    ip("link add first type bridge")
    present, lists = Devices(), []
    listed = devices.socket.if_nameindex
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(devices.socket, "if_nameindex", lambda: lists.append(1) or listed())
        seen: list[Any] = [present.rang(), present.names(), present.names(), len(lists)]
        ip("link add second type bridge")
        seen += [present.rang(), present.rang(), present.names(), present.names(), len(lists)]
        ip("link set second name another")
        seen += [present.names(), present.rang(), len(lists)]
        box.new_namespace().call(lambda: ip("link add elsewhere type bridge"))
        seen += [present.rang(), len(lists)]
        ip("link del first")
        seen += [present.names(), len(lists)]
    present.close()
    return seen


def test_one_that_comes_goes_or_is_renamed_is_told_once_and_the_list_is_made_again() -> None:
    assert box.in_box(told) == [
        *(False, ("first",), ("first",), 1),
        *(True, False, ("first", "second"), ("first", "second"), 2),
        *(("another", "first"), False, 3),
        *(False, 3),
        *(("another",), 4),
    ]
