"""A web page on another host cannot make a browser ask this proxy, whatever its name resolves to."""

from __future__ import annotations

import pytest

from agentsh_net.core.web.http_access import host_allowed, origin_allowed


@pytest.mark.parametrize(
    "host",
    [
        b"localhost",
        b"LOCALHOST:8484",
        b"127.0.0.1:8484",
        b"127.8.8.8",
        b"[::1]:8484",
        b"[::ffff:127.0.0.1]:8484",
        b"[::ffff:7f00:1]",
        b"agent.localhost",
        b"localhost.",
    ],
)
def test_loopback_names_are_this_proxy(host):
    assert host_allowed(host, "127.0.0.1")


@pytest.mark.parametrize(
    "host",
    [
        b"evil.example",
        b"evil.example:8484",
        b"localhost.evil.example",
        b"10.0.0.1",
        b"[2001:db8::1]",
        b"[::ffff:10.0.0.1]",
        b"[64:ff9b::7f00:1]",
        b"",
        b"a b",
        b"localhost@evil",
    ],
)
def test_other_names_are_not(host):
    assert not host_allowed(host, "127.0.0.1")


def test_the_configured_address_is_this_proxy():
    assert host_allowed(b"10.0.0.1:8484", "10.0.0.1")
    assert host_allowed(b"Proxy.corp", "proxy.corp")


@pytest.mark.parametrize("listen", ["::ffff:10.0.0.1", "::ffff:a00:1"])
@pytest.mark.parametrize("host", [b"[::ffff:10.0.0.1]", b"[::FFFF:A00:1]:8484"])
def test_the_configured_address_is_this_proxy_however_either_is_spelled(host, listen):
    assert host_allowed(host, listen)


def test_a_wildcard_stands_for_any_address_but_for_no_name():
    assert host_allowed(b"10.0.0.1", "0.0.0.0")
    assert host_allowed(b"[2001:db8::1]:1", "::")
    assert not host_allowed(b"evil.example", "0.0.0.0")


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        (b"http://localhost:3000", True),
        (b"https://127.0.0.1", True),
        (b"http://[::1]:8", True),
        (b"https://evil.example", False),
        (b"null", False),
        (b"chrome-extension://abc", False),
        (b"http://localhost.evil.example", False),
    ],
)
def test_only_pages_of_this_machine_may_ask(origin, allowed):
    assert origin_allowed(origin) is allowed
