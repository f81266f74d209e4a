"""The hosts file is the operator's word: every address of a name, read again when it changes, kept when it cannot be read."""

from __future__ import annotations

import os
from ipaddress import ip_address
from pathlib import Path

import pytest

from agentsh_net.kernel.names.hosts_file import HostsFile, is_localhost

TEXT = """
127.0.0.1   localhost
10.0.0.1    mcp.internal mcp   # the first
fd00::1     MCP.Internal.
10.0.0.1    mcp.internal
not-an-address  other
10.0.0.2
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "hosts"
    file.write_text(TEXT)
    return file


def test_a_name_has_all_its_addresses_once_in_any_case(path: Path) -> None:
    hosts = HostsFile(path)
    assert hosts.refresh()
    assert hosts.addresses("Mcp.Internal") == (ip_address("10.0.0.1"), ip_address("fd00::1"))
    assert hosts.addresses("mcp") == (ip_address("10.0.0.1"),)
    assert hosts.addresses("other") == hosts.addresses("unknown") == ()


def test_an_unchanged_file_is_not_read_again_and_a_changed_one_is(path: Path) -> None:
    hosts = HostsFile(path)
    assert hosts.refresh()
    assert not hosts.refresh()
    path.write_text("10.9.9.9 mcp\n")
    assert hosts.refresh()
    assert hosts.addresses("mcp") == (ip_address("10.9.9.9"),)


def test_a_file_that_vanished_changes_nothing(path: Path) -> None:
    hosts = HostsFile(path)
    hosts.refresh()
    path.unlink()
    assert not hosts.refresh()
    assert hosts.addresses("mcp") == (ip_address("10.0.0.1"),)


def test_bytes_that_are_no_text_are_stepped_over(path: Path) -> None:
    path.write_bytes(b"\xff\xfe garbage\n10.0.0.3 mcp\n")
    os.utime(path, (1, 1))
    hosts = HostsFile(path)
    hosts.refresh()
    assert hosts.addresses("mcp") == (ip_address("10.0.0.3"),)


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST.", "mcp.localhost"])
def test_localhost_is_loopback_without_being_listed(name: str, tmp_path: Path) -> None:
    assert is_localhost(name)
    assert HostsFile(tmp_path / "none").addresses(name) == (ip_address("127.0.0.1"), ip_address("::1"))


@pytest.mark.parametrize("name", ["localhost.example.com", "notlocalhost", ""])
def test_other_names_are_not_localhost(name: str) -> None:
    assert not is_localhost(name)
