"""A connector is who its URL says it is: no label launders a URL, and no other path on a denied host does."""

from __future__ import annotations

import pytest
from situations import registry, server, situation

from agentsh_net.core.configuration.settings import (
    ArgumentMatch,
    Config,
    Mcp,
    Sandbox,
    ServerRule,
    ToolRule,
    VersionPinning,
)
from agentsh_net.core.model import Action
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins, tool_of, trust
from agentsh_net.core.verdicts import connectors

WEATHER = server("weather", "https://mcp.example.com/weather", host="mcp.example.com", port=443)
BAD = server("bad", "https://bad.example.com/mcp", host="bad.example.com", port=443)
FS = server("fs")

OPEN = {}
CLOSED = {"fail_closed": True}
DENIED = {"denied_servers": (ServerRule("bad"),)}
LISTED = {"server_policy": "allowlist", "allowed_servers": (ServerRule("weather"),)}
ALL = {"server_policy": "allowlist", "allowed_servers": (ServerRule("*"),)}
ALL_NAMED = {"server_policy": "allowlist", "allowed_servers": (ServerRule("weather"), ServerRule("*"))}
HOST = {"denied_servers": (ServerRule("evil.example"),)}
NONE = {"denied_servers": (ServerRule("*"),)}


def judge(mcp, server_id, url):
    config = Config(sandbox=Sandbox(Mcp(**mcp)))
    return Snapshot(1, "", config, registry([WEATHER, BAD, FS]), Pins()).judge_connector(server_id, url)


GOOD_URL = "https://mcp.example.com/weather"


@pytest.mark.parametrize(
    ("mcp", "server_id", "url", "action"),
    [
        (LISTED, "weather", GOOD_URL, "allow"),
        (LISTED, "Weather", "HTTPS://MCP.example.com:443/weather/", "allow"),
        (LISTED, "my label", GOOD_URL, "allow"),  # the URL says who it is
        (LISTED, "", GOOD_URL, "allow"),
        (LISTED, "weather", "", "allow"),  # all that is known is the id
        (LISTED, "weather", "https://evil.example/mcp", "block"),
        (LISTED, "weather", "http://mcp.example.com:443/weather", "block"),
        (LISTED, "weather", "https://mcp.example.com/other", "block"),
        (LISTED, "weather", "connector_googledrive", "block"),
        (LISTED, "", "https://evil.example/mcp", "block"),
        (LISTED, "", "", "block"),
        (LISTED, "bad", GOOD_URL, "block"),  # two identities, one of them not allowed
        (DENIED, "bad", "", "block"),
        (DENIED, "weather", "https://bad.example.com/mcp", "block"),
        (DENIED, "harmless", "https://bad.example.com/another/path", "block"),
        (DENIED, "harmless", "https://bad.example.com:8443/mcp", "allow"),  # another port is another place
        (DENIED, "harmless", "https://evil.example/mcp", "allow"),
        (OPEN, "x", "https://evil.example/mcp", "allow"),
        (CLOSED, "x", "https://evil.example/mcp", "block"),
        (CLOSED, "x", "not a url", "block"),
        (CLOSED, "x", "", "block"),
        (CLOSED, "weather", GOOD_URL, "allow"),
        (CLOSED, "weather", "https://evil.example/mcp", "block"),
        (ALL, "x", "https://evil.example/mcp", "allow"),
        (ALL | CLOSED, "x", "https://evil.example/mcp", "block"),
        (ALL_NAMED, "x", "https://evil.example/mcp", "allow"),
        (HOST, "", "https://evil.example/mcp", "block"),  # its host stands for a name that it has not
        (HOST, "x", "https://evil.example/mcp", "allow"),
        (NONE, "", "https://evil.example/mcp", "block"),
        (NONE, "weather", GOOD_URL, "block"),
    ],
)
def test_a_connector_goes_by_its_name_and_its_url_together(mcp, server_id, url, action):
    assert judge(mcp, server_id, url).action == action


def test_what_passes_unknown_says_so():
    reason = judge(OPEN, "weather", "https://evil.example/mcp").reason
    assert "name of a declared server, but not its URL" in reason
    assert "fail_closed is false" in reason
    assert "has a URL of no declared server" in judge(OPEN, "x", "https://evil.example/mcp").reason
    assert judge(OPEN, "x", "").reason.startswith("connector 'x' is no declared server")


def test_audit_mode_blocks_no_connector():
    verdict = judge(CLOSED | {"enforce_policy": False}, "x", "https://evil.example/mcp")
    assert (verdict.action, verdict.would) == (Action.ALLOW, Action.BLOCK)


def test_a_secret_in_a_url_is_in_no_reason():
    for mcp in (OPEN, CLOSED, LISTED, DENIED, NONE):
        for label in ("x", ""):
            assert "s3cret" not in judge(mcp, label, "https://evil.example/mcp?token=s3cret").reason


def reach_of(**mcp):
    snapshot = situation(["fs"], {"fs": ["get", "rm"]} if mcp.pop("seen", True) else {}, **mcp)
    return snapshot.connector_reach("fs", "")


def test_a_connector_reaches_what_its_servers_rules_allow():
    assert not reach_of().confined
    some = reach_of(denied_tools=[("fs", "rm")])
    assert (some.confined, some.known, some.allowed, some.denied) == (True, True, ("get",), ("rm",))
    assert not reach_of(denied_tools=[("web", "rm")]).confined
    assert reach_of(denied_tools=[("*", "*")], seen=False).confined
    assert reach_of(denied_tools=[("fs", "rm")], seen=False) == connectors.Reach(confined=True)
    assert reach_of(tool_policy="allowlist", allowed_tools=[("fs", "get")]).denied == ("rm",)
    unseen = reach_of(tool_policy="allowlist", allowed_tools=[("fs", "get")], seen=False)
    assert (unseen.confined, unseen.known) == (True, False)
    audited = reach_of(denied_tools=[("fs", "rm")], enforce_policy=False)
    assert (audited.confined, audited.denied) == (True, ("rm",))  # what comes of it is the caller's business


def test_rules_over_an_undeclared_server_are_by_its_label_else_its_host():
    snapshot = situation(["fs"], denied_tools=[("evil.example", "rm"), ("label", "rm")])
    reached = {
        label: snapshot.connector_reach(label, "https://evil.example/mcp").confined
        for label in ("", "label", "x")
    }
    assert reached == {"": True, "label": True, "x": False}


def test_a_tool_that_waits_for_trust_confines_its_connector():
    trusted = Pins.of([trust(tool_of("fs", {"name": "get"}), "")])
    snapshot = situation(
        ["fs"], {"fs": ["get", "rm"]}, pins=trusted, version_pinning=VersionPinning(auto_trust_first=False)
    )
    assert snapshot.connector_reach("fs", "") == connectors.Reach(True, True, ("get",), ("rm",))


def test_a_connector_reaches_what_the_server_of_its_url_offers_whatever_its_label():
    mcp = Mcp(denied_tools=(ToolRule("weather", "rm"),))
    known = registry([WEATHER, FS], {"weather": ["get", "rm"], "fs": ["ls"]})
    snapshot = Snapshot(1, "", Config(sandbox=Sandbox(mcp)), known, Pins())
    for label in ("fs", "x", ""):
        assert snapshot.connector_reach(label, GOOD_URL).denied == ("rm",)


def test_rules_over_arguments_confine_and_say_so():
    rule = {"server": "fs", "tool": "get", "args": (ArgumentMatch("path", "equals", 1),)}
    found = reach_of(denied_tools=[rule])
    assert (found.confined, found.by_arguments, found.allowed) == (True, True, ("get", "rm"))
