"""What a conversation adds of tools is found wherever it stands, is learned and judged, and gets no server past its confinement."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentsh_net.core.dialects.anthropic import request as anthropic_request
from agentsh_net.core.dialects.anthropic.tool_changes import added, servers
from agentsh_net.core.dialects.request_connectors import ConfinementError, confined
from agentsh_net.core.dialects.request_offers import added_offers, referred
from agentsh_net.core.verdicts.connectors import Reach

URL = "https://mcp.example/mcp"
TOOLSET = {"type": "mcp_toolset", "mcp_server_name": "fs", "default_config": {"enabled": True}}
FUNCTION = {"name": "z_91", "description": "Deletes files.", "input_schema": {"type": "object"}}
ADDED: dict[str, dict[str, Any]] = {
    "a toolset": {"type": "tool_definition", "definition": TOOLSET},
    "a reference to a toolset": {"type": "mcp_toolset_reference", "server_name": "fs"},
    "a reference to a tool": {"type": "mcp_tool_reference", "server_name": "fs", "name": "rm"},
}
SOME = Reach(confined=True, known=True, allowed=("get",), denied=("rm",))


def block(tool: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_addition", "tool": tool}


def saying(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}, {"role": "system", "content": list(blocks)}],
        **more,
    }


PLACES = {
    "a message": block,
    "a compaction": lambda tool: {
        "type": "compaction",
        "content": "x",
        "tool_changes": [{"type": "tool_removal"}, block(tool)],
    },
    "case": lambda tool: {"Type": " Tool_Addition", "Tool": tool},
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", ADDED)
def test_a_server_that_is_added_is_a_connector_and_cannot_be_confined(what: str, place: str) -> None:
    request = saying(PLACES[place](ADDED[what]), mcp_servers=[{"type": "url", "name": "fs", "url": URL}])
    ((_, tool),) = added(request)
    assert servers(tool) == ["fs"]
    facts = anthropic_request.read(json.dumps(request).encode())
    assert [(c.server_id, c.url) for c in facts.connectors] == [("fs", URL)]
    assert facts.adds_tools
    with pytest.raises(ConfinementError, match="the conversation may add"):
        confined(request, lambda *_: SOME)
    assert confined(request, lambda *_: Reach()) == {}


def test_a_server_that_nothing_but_the_conversation_names_is_judged_by_its_name() -> None:
    facts = anthropic_request.read(json.dumps(saying(block(ADDED["a toolset"]))).encode())
    assert [(c.server_id, c.url) for c in facts.connectors] == [("fs", "")]


def test_a_thread_that_goes_on_may_have_more_of_a_server_than_its_request_shows() -> None:
    request = saying(
        mcp_servers=[{"type": "url", "name": "fs", "url": URL}],
        thread={"type": "continue", "previous_message_id": "m"},
    )
    with pytest.raises(ConfinementError):
        confined(request, lambda *_: SOME)
    assert confined({**request, "thread": {"type": "create"}}, lambda *_: SOME)


def test_a_tool_that_is_added_is_learned_as_an_offer() -> None:
    request = saying(block({"type": "tool_definition", "definition": FUNCTION}))
    facts = anthropic_request.read(json.dumps(request).encode())
    assert (facts.adds_tools, facts.parsed) == (True, request)
    (offer,) = added_offers(request)
    assert (offer.name, offer.description) == ("z_91", "Deletes files.")
    assert added_offers(saying()) == []


def test_a_tool_that_is_referred_to_is_not_to_be_hidden() -> None:
    assert referred(saying(block({"type": "tool_reference", "name": "z_91"}))) == {"z_91"}


@pytest.mark.parametrize(
    "content",
    [
        "tool_addition",
        [
            1,
            {"type": "tool_addition"},
            {"type": "tool_addition", "tool": "x"},
            {"type": "compaction", "tool_changes": {}},
        ],
        None,
    ],
)
def test_odd_conversations_add_nothing(content: Any) -> None:
    assert list(added({"messages": [1, {"content": content}]})) == []
    assert list(added({"messages": "x"})) == []
