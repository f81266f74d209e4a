"""Our questions go to the system's name servers, and never to our own stub."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import dns.exception
import dns.message
import dns.resolver
import pytest

from agentsh_net.kernel.names.name_servers import NameServers, failure


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def files(tmp_path: Path, first: str, second: str = "") -> list[Path]:
    paths = [tmp_path / "resolv.conf", tmp_path / "behind.conf"]
    for path, text in zip(paths, (first, second), strict=True):
        if text:
            path.write_text(text)
    return paths


def test_they_are_those_of_resolv_conf_with_its_search_list(tmp_path: Path) -> None:
    found = NameServers(
        files=files(tmp_path, "nameserver 10.0.0.53\nnameserver fd00::53\nsearch corp.test lab.test\n")
    )
    assert found.asked() == ("10.0.0.53", "fd00::53")
    assert found.search() == ("corp.test", "lab.test")
    assert [server.answer_nameserver() for server in found.resolver().nameservers] == [
        "10.0.0.53",
        "fd00::53",
    ]
    assert found.has(ip_address("fd00::53"))
    assert found.has(ip_address("::ffff:10.0.0.53"))
    assert not found.has(ip_address("10.0.0.54"))


def test_where_the_machine_is_pointed_at_the_stub_those_behind_it_are_asked(tmp_path: Path) -> None:
    stubbed = files(tmp_path, "nameserver 127.0.0.55\n", "nameserver 10.0.0.53\n")
    found = NameServers(stub="127.0.0.55", files=stubbed)
    assert found.asked() == ("10.0.0.53",)
    assert found.has(ip_address("127.0.0.55"))


def test_nobody_to_ask_is_an_error_and_not_a_question_to_ourselves(tmp_path: Path) -> None:
    found = NameServers(stub="127.0.0.55", files=files(tmp_path, "nameserver 127.0.0.55\n"))
    assert found.asked() == ()
    with pytest.raises(dns.resolver.NoResolverConfiguration):
        found.resolver()


def test_what_the_operator_chose_goes_first_and_needs_no_file(tmp_path: Path) -> None:
    found = NameServers(["10.0.0.9"], files=[tmp_path / "absent"])
    assert found.asked() == ("10.0.0.9",)
    assert [server.answer_nameserver() for server in found.resolver().nameservers] == ["10.0.0.9"]


def test_a_change_of_network_is_followed_within_seconds(tmp_path: Path) -> None:
    clock = Clock()
    paths = files(tmp_path, "nameserver 10.0.0.53\n")
    found = NameServers(files=paths, clock=clock)
    assert found.asked() == ("10.0.0.53",)
    paths[0].write_text("nameserver 10.0.0.54\n")
    clock.now = 6
    assert found.asked() == ("10.0.0.54",)


def test_each_server_that_was_asked_is_told_with_what_it_said() -> None:
    asked = [
        ("Do53:10.0.0.53@53", False, 53, OSError(101, "Network is unreachable"), None),
        ("Do53:10.0.0.53@53", True, 53, OSError(101, "Network is unreachable"), None),
        ("Do53:fd00::53@5353", False, 5353, dns.exception.Timeout(), None),
        ("Do53:10.0.0.54@53", False, 53, "SERVFAIL", None),
    ]
    refused = dns.resolver.NoNameservers(request=dns.message.make_query("a.test", "A"), errors=asked)
    assert failure(refused) == (
        "10.0.0.53: Network is unreachable; fd00::53@5353: The DNS operation timed out.; 10.0.0.54: SERVFAIL"
    )
    assert failure(dns.resolver.NXDOMAIN()).startswith("NXDOMAIN: ")
    assert failure(OSError(24, "Too many open files")) == "OSError: [Errno 24] Too many open files"
