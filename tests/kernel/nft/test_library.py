"""libnftables commits what it is given or says why not, and its own netlink socket is found, whatever else is open."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from types import ModuleType

import pytest
from netns import box

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.netlink import NETFILTER, Netlink
from agentsh_net.kernel.nft import library as nft_library
from agentsh_net.kernel.nft.library import Library

pytestmark = pytest.mark.kernel


def test_its_socket_is_the_one_that_it_writes_by() -> None:
    def inside() -> tuple[bool, bool, int]:
        with Netlink(NETFILTER), socket.socket() as _tcp:
            library = Library()
            # Belongs to the socket that it was sent by.
            library.commit("add table inet mine { flags owner; }")
            duplicate = library.socket()
            assert duplicate is not None
            port, inheritable = duplicate.getsockname()[0], os.get_inheritable(library._fd)
            mine = subprocess.run(["nft", "delete table inet mine"], capture_output=True, check=False)
            duplicate.close()
            library.close()
            return port != 0, inheritable, mine.returncode

    assert box.in_box(inside) == (True, False, 1)


def test_when_it_is_closed_its_socket_is_gone() -> None:
    def inside() -> tuple[object, str]:
        library = Library()
        library.commit("add table inet mine { flags owner; }")  # goes with its owner
        library.close()
        listed = subprocess.run(["nft", "list", "tables"], capture_output=True, text=True, check=True)
        return library.socket(), listed.stdout

    assert box.in_box(inside) == (None, "")


def test_of_two_sockets_that_came_at_once_neither_is_taken_for_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def inside() -> object:
        others: list[Netlink] = []
        opened = nft_library._opened

        def beside() -> object:
            others.append(Netlink(NETFILTER))
            return opened()

        monkeypatch.setattr(nft_library, "_opened", beside)
        return Library().socket()

    assert box.in_box(inside) is None


def test_what_is_refused_is_said() -> None:
    def inside() -> str:
        try:
            Library().commit("delete table inet nowhere")
        except KernelError as error:
            return str(error)
        return ""

    assert "nftables refused the ruleset" in box.in_box(inside)


def test_another_module_of_the_bindings_name_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nftables", ModuleType("nftables"))
    with pytest.raises(KernelError, match="python3-nftables is"):
        Library()
