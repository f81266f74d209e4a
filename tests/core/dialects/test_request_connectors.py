"""A connector that may be called reaches no tool that policy denies: by name, by approval, or by refusal."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.request_connectors import ConfinementError, confined
from agentsh_net.core.verdicts.connectors import Reach

OPEN = Reach()
SOME = Reach(confined=True, known=True, allowed=("get", "list"), denied=("rm",))
BLIND = Reach(confined=True)
LOOKING = Reach(confined=True, known=True, allowed=("get",), by_arguments=True)
NONE = Reach(confined=True, known=True, denied=("rm",))
MCP = {"type": "mcp", "server_label": "fs", "server_url": "https://x/mcp"}


def edits(request, reach):
    asked = []

    def ask(label, address):
        asked.append((label, address))
        return reach

    return confined(request, ask), asked


@pytest.mark.parametrize(
    ("request_", "where"),
    [({"tools": [{"type": "function"}, MCP]}, ("tools", 1)), ({"tools": [{"type": "mcp", "mcp": MCP}]}, ("tools", 0, "mcp")),
     ({"input": ["x", {"tools": [MCP]}]}, ("input", 1, "tools", 0)), ({"items": [{"tools": [MCP]}]}, ("items", 0, "tools", 0)),
     ({"requests": [1, {"params": {"tools": [MCP]}}]}, ("requests", 1, "params", "tools", 0)), ({"tools": [{"type": "namespace", "tools": [MCP]}]}, ("tools", 0, "tools", 0)),
     ({"Tools": [{**MCP, "type": " MCP"}]}, ("Tools", 0))],
)  # fmt: skip
def test_allowed_tools_are_named_wherever_the_connector_stands(request_, where):
    assert edits(request_, SOME) == ({(*where, "allowed_tools"): ["get", "list"]}, [("fs", "https://x/mcp")])
    assert edits(request_, OPEN)[0] == {}


@pytest.mark.parametrize(
    ("given", "left"),
    [(["rm", "list"], ["list"]), ({"tool_names": ["get", "rm"], "read_only": True}, {"tool_names": ["get"], "read_only": True}),
     ({"read_only": True}, {"tool_names": ["get", "list"], "read_only": True}), (["list"], None), (None, ["get", "list"])],
)  # fmt: skip
def test_what_was_asked_for_is_intersected(given, left):
    found, _ = edits({"tools": [{**MCP, "allowed_tools": given}]}, SOME)
    assert found == ({} if left is None else {("tools", 0, "allowed_tools"): left})


@pytest.mark.parametrize("given", ["never", {"never": {"tool_names": ["rm"]}}])
@pytest.mark.parametrize("reach", [BLIND, LOOKING])
def test_what_names_cannot_decide_waits_for_an_approval(reach, given):
    found, _ = edits({"tools": [{**MCP, "require_approval": given}]}, reach)
    assert found["tools", 0, "require_approval"] == "always"
    found, _ = edits({"tools": [MCP, {**MCP, "require_approval": "always"}]}, BLIND)
    assert found == {}  # it is what the API does


@pytest.mark.parametrize(
    "request_",
    [{"tools": [MCP]}, {"mcp_servers": [{"name": "fs", "url": "u"}]},
     {"mcp_servers": [{"name": "fs", "url": "u"}], "tools": [{"type": "mcp_toolset", "mcp_server_name": "fs"}]}],
)  # fmt: skip
def test_a_server_of_which_nothing_is_left_is_refused(request_):
    with pytest.raises(ConfinementError, match="'fs': policy denies every tool"):
        edits(request_, NONE)


SERVER = {"type": "url", "name": "fs", "url": "https://x/mcp"}


def test_anthropic_servers_get_a_list_of_tools():
    found, asked = edits({"mcp_servers": [{**SERVER, "tool_configuration": {"enabled": True}}]}, SOME)
    assert found == {
        ("mcp_servers", 0, "tool_configuration"): {"enabled": True, "allowed_tools": ["get", "list"]}
    }
    assert asked == [("fs", "https://x/mcp")]
    asked_for = {**SERVER, "tool_configuration": {"allowed_tools": ["get"]}}
    assert edits({"mcp_servers": [asked_for]}, SOME)[0] == {}


@pytest.mark.parametrize(
    ("toolset", "configs"),
    [({}, {"get": {"enabled": True}, "list": {"enabled": True}}),
     ({"default_config": {"enabled": False}, "configs": {"get": {"enabled": True}, "rm": {"enabled": True}}}, {"get": {"enabled": True}}),
     ({"configs": {"list": {"enabled": False}, "get": {"defer_loading": True}}}, {"get": {"defer_loading": True, "enabled": True}})],
)  # fmt: skip
def test_anthropic_toolsets_enable_the_allowed_tools_by_name(toolset, configs):
    tools = [{"name": "x"}, {"type": "mcp_toolset", "mcp_server_name": "fs", **toolset}]
    found, _ = edits({"mcp_servers": [SERVER], "tools": tools}, SOME)
    assert found["tools", 1, "default_config"] == {"enabled": False}
    assert found["tools", 1, "configs"] == configs


@pytest.mark.parametrize("reach", [BLIND, LOOKING])
def test_anthropic_knows_no_approval_so_what_needs_one_is_refused(reach):
    with pytest.raises(ConfinementError, match="cannot be judged before the provider runs them"):
        edits({"mcp_servers": [SERVER]}, reach)


def test_odd_requests_are_left_alone():
    for request in (
        {},
        {"tools": 5},
        {"tools": [5, {"type": 5}]},
        {"input": [5]},
        {"mcp_servers": [5]},
        {"mcp_servers": {}},
    ):
        assert edits(request, SOME)[0] == {}


def test_the_requests_of_a_batch_are_confined_each():
    servers = [{"type": "url", "name": "fs", "url": "https://x/mcp"}]
    batch = {
        "Requests": [
            {"custom_id": "1", "params": {"model": "m"}},
            {"params": {"mcp_servers": servers}},
            {"params": 1},
        ]
    }
    found, asked = edits(batch, SOME)
    where = ("Requests", 1, "params", "mcp_servers", 0, "tool_configuration")
    assert (found, asked) == ({where: {"allowed_tools": ["get", "list"]}}, [("fs", "https://x/mcp")])
    with pytest.raises(ConfinementError):
        edits(batch, BLIND)
