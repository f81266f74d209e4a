"""A slip in a valid policy is told with its place, and what people write on purpose is not."""

import pytest

from agentsh_net.core.configuration.config import parse
from agentsh_net.core.configuration.oversights import oversights

SERVERS = [{"id": name, "type": "stdio", "command": "x"} for name in ("prod-db", "weather")]


def told(mcp=(), **sections):
    mapping = {"version": 1, "sandbox": {"mcp": {"servers": SERVERS, **dict(mcp)}}, **sections}
    return oversights(parse(mapping), mapping)


@pytest.mark.parametrize(
    ("rules", "where"),
    [
        ({"denied_servers": [{"id": "weather"}, {"id": "prod-bd"}]}, "sandbox.mcp.denied_servers[1]"),
        ({"server_policy": "allowlist", "allowed_servers": ["prod_db"]}, "sandbox.mcp.allowed_servers[0]"),
        ({"denied_tools": [{"server": "proddb", "tool": "*"}]}, "sandbox.mcp.denied_tools[0]"),
        ({"allowed_tools": [{"server": "Prod-Db1"}]}, "sandbox.mcp.allowed_tools[0]"),
    ],
)
def test_a_rule_for_a_server_that_is_nearly_declared_is_told_with_the_one_that_is(rules, where):
    [note] = told(rules)
    assert note.startswith(f"{where} is about server ")
    assert note.endswith("which is not declared (did you mean 'prod-db'?)")


@pytest.mark.parametrize(
    "rules",
    [
        {"denied_servers": [{"id": "PROD-DB "}, {"id": "*"}, {"id": "prod-d?"}]},
        {"denied_servers": [{"id": "evil"}]},  # one that others bring along
        {"denied_tools": [{"tool": "prod-bd"}]},
        {"tool_policy": "allowlist", "allowed_tools": [{"tool": "read_*"}]},
    ],
)
def test_what_is_written_on_purpose_is_not_told(rules):
    assert told(rules) == ()


@pytest.mark.parametrize(
    "command", ["npx -y some-server", "npx some-server", "/usr/bin/node /srv/server.js", "./run --stdio"]
)
def test_a_whole_command_line_in_the_place_of_a_program_is_told(command):
    [note] = told({"servers": [{"id": "a", "type": "stdio", "command": command}]})
    assert note.startswith("sandbox.mcp.servers[0].command is the program alone") and "`args`" in note


@pytest.mark.parametrize(
    "server",
    [
        {"command": "/opt/My Tools/server"},
        {"command": "/opt/My Tools/server", "args": ["--stdio"]},
        {"command": "My Tool", "args": ["x"]},
    ],
)
def test_a_program_whose_path_has_spaces_is_no_command_line(server):
    assert told({"servers": [{"id": "a", "type": "stdio", **server}]}) == ()


def test_a_list_that_allows_nothing_is_told():
    assert told({"server_policy": "allowlist", "tool_policy": "allowlist"}) == (
        "sandbox.mcp.server_policy is allowlist, and allowed_servers is empty: every server is blocked",
        "sandbox.mcp.tool_policy is allowlist, and allowed_tools is empty: every tool is blocked",
    )


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"gateway": {"enabled": False, "servers": {"weather": {}}}}, "gateway.enabled is false"),
        ({"network": {"mode": "off", "llm_direct": "refuse"}}, "llm_direct: refuse is not in force"),
        ({"network": {"mode": "enforce", "layers": []}}, "mode: enforce is in force nowhere"),
    ],
)
def test_what_is_configured_for_something_that_is_off_is_told(sections, words):
    [note] = told(**sections)
    assert words in note


REMOTE = {"servers": [{"id": f"s{n}", "type": "http", "url": f"http://s{n}.example/mcp"} for n in range(5)]}


def test_denied_servers_that_the_network_lets_through_by_default_are_told():
    [note] = told({**REMOTE, "denied_servers": ["s2"]})
    assert note.startswith("network.mode is not set: ") and "(s2)" in note and "mode: enforce" in note
    [note] = told({**REMOTE, "denied_servers": ["*"]}, network={"layers": ["nftables"]})
    assert "(s0, s1, s2, ...)" in note


@pytest.mark.parametrize(
    ("mcp", "sections"),
    [
        ({"denied_servers": ["s2"]}, {"network": {"mode": "tag"}}),
        ({"denied_servers": ["s2"]}, {"network": {"mode": "enforce"}}),
        ({"denied_servers": ["s2"], "enforce_policy": False}, {}),
        ({"denied_servers": ["another"]}, {}),
        ({"denied_tools": [{"server": "s2"}]}, {}),
    ],
)
def test_what_the_network_does_by_choice_or_has_not_to_do_is_not_told(mcp, sections):
    assert told({**REMOTE, **mcp}, **sections) == ()


def test_the_defaults_are_no_oversight():
    assert told() == ()


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "10.0.0.1"])
def test_what_listens_for_other_hosts_is_told(address):
    stub = {"resolve": {"stub": True, "stub_listen": address}}
    notes = told(proxy={"listen": address}, gateway={"enabled": True, "listen": address}, network=stub)
    doors = ["proxy.listen", "gateway.listen", "network.resolve.stub_listen"]
    assert [note.split(":")[0].split(" is ")[0] for note in notes] == doors
    assert all("by the network" in note for note in notes)
    assert (
        told(proxy={"mode": "disabled", "listen": address}, gateway={"enabled": False, "listen": address})
        == ()
    )


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", "localhost"])
def test_the_loopback_is_for_nobody_else(address):
    assert told(proxy={"listen": address}) == ()


@pytest.mark.parametrize(
    ("network", "mcp", "note"),
    [
        ({"egress": {"allow": ["a.test"]}}, {}, "network.egress.sessions is open"),
        ({"mode": "off", "egress": {"sessions": "refuse"}}, {}, "network.mode is off: network.egress"),
        ({"mode": "tag", "egress": {"sessions": "refuse"}}, {}, "network.mode is tag: what network.egress"),
        (
            {"mode": "enforce", "egress": {"sessions": "refuse"}},
            {"enforce_policy": False},
            "policy is audited: what network.egress",
        ),
        (
            {"mode": "enforce", "egress": {"sessions": "tag", "allow": ["b.test", "evil.test:443"]}},
            {
                "servers": [{"id": "evil", "type": "http", "url": "https://evil.test/mcp"}],
                "server_policy": "denylist",
                "denied_servers": [{"id": "evil"}],
            },
            "network.egress.allow[1] is the host of the denied server 'evil'",
        ),
    ],
)
def test_what_egress_says_and_is_not_so_is_told(network, mcp, note):
    [found] = told(mcp, network=network)
    assert found.startswith(note)


def test_what_egress_means_is_not_told():
    assert told(network={"mode": "enforce", "egress": {"sessions": "refuse", "allow": ["a.test"]}}) == ()
