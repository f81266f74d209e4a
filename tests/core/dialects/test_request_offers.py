"""Every shape of an offer is found where it stands, and a request without some of them is one that its API takes."""

from __future__ import annotations

import json

import pytest

from agentsh_net.core.dialects import request_offers
from agentsh_net.core.dialects.anthropic import dialect as anthropic
from agentsh_net.core.dialects.gemini import dialect as gemini
from agentsh_net.core.dialects.ollama import dialect as ollama
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.values.json_splice import splice

SCHEMA = {"type": "object", "properties": {"a": {}}}


def offered(request):
    return [
        (o.namespace, o.name, o.description, o.schema, o.path)
        for o in request_offers.offers(request_offers.lists(request))
    ]


PLAIN = {"name": "t", "description": "d"}
SHAPES = {
    "anthropic": ({"tools": [{**PLAIN, "input_schema": SCHEMA}]}, "", ("tools", 0)),
    "anthropic custom": ({"tools": [{"type": "custom", **PLAIN, "input_schema": SCHEMA}]}, "", ("tools", 0)),
    "chat": ({"tools": [{"type": "function", "function": {**PLAIN, "parameters": SCHEMA}}]}, "", ("tools", 0)),
    "legacy": ({"functions": [{**PLAIN, "parameters": SCHEMA}]}, "", ("functions", 0)),
    "responses": ({"tools": [{"type": "function", **PLAIN, "parameters": SCHEMA}]}, "", ("tools", 0)),
    "namespace": (
        {"tools": [{"type": "namespace", "name": "ns", "tools": [{"type": "function", **PLAIN, "parameters": SCHEMA}]}]},
        "ns", ("tools", 0, "tools", 0),
    ),
    "additional": (
        {"input": ["x", {"type": "additional_tools", "tools": [{"type": "function", **PLAIN, "parameters": SCHEMA}]}]},
        "", ("input", 1, "tools", 0),
    ),
    "gemini": (
        {"tools": [{"functionDeclarations": [{**PLAIN, "parametersJsonSchema": SCHEMA}]}]},
        "", ("tools", 0, "functionDeclarations", 0),
    ),
    "bedrock": ({"toolConfig": {"tools": [{"toolSpec": {**PLAIN, "inputSchema": {"json": SCHEMA}}}]}}, "", ("toolConfig", "tools", 0)),
}  # fmt: skip


@pytest.mark.parametrize(("request_", "namespace", "path"), SHAPES.values(), ids=SHAPES)
def test_every_shape_is_found(request_, namespace, path):
    assert offered(request_) == [(namespace, "t", "d", SCHEMA, path)]


@pytest.mark.parametrize(
    "tool", [{"type": "web_search"}, {"type": "mcp", "server_url": "x"}, {"type": "bash_20250124", "name": "bash"},
             {"type": "mcp_toolset", "mcp_server_name": "x"}, 5, None, {"name": 5}, {"type": 5, "name": "x"}]
)  # fmt: skip
def test_what_the_client_does_not_run_is_no_offer(tool):
    assert offered({"tools": [tool]}) == []


@pytest.mark.parametrize("dialect", [openai_chat.DIALECT, ollama.DIALECT, gemini.DIALECT, anthropic.DIALECT])
def test_a_request_that_offers_nothing_is_quiet_and_one_that_offers_tools_is_kept(dialect):
    plain = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "tools": []}
    assert request_offers.offering(plain) is None
    assert dialect.request(json.dumps(plain).encode()).quiet
    offers_one = plain | {"tools": [{"name": "x", "functionDeclarations": [{"name": "x"}]}]}
    assert request_offers.offering(offers_one) is offers_one
    facts = dialect.request(json.dumps(offers_one).encode())
    assert (facts.quiet, facts.parsed) == (False, offers_one)


def test_odd_requests_offer_nothing():
    for request in (
        {},
        {"tools": None},
        {"tools": {}},
        {"input": "x"},
        {"input": [{"tools": "x"}]},
        {"toolConfig": 5},
    ):
        assert offered(request) == []


@pytest.mark.parametrize("odd", [[], {}, [{}], None, 7, "\ud800"], ids=repr)
def test_values_of_any_type_are_no_error_of_ours(odd):
    offer = {"type": odd, "name": odd, "function": odd}
    found = {
        "tools": [offer, {**A, "type": odd}, A],
        "functions": [odd],
        "messages": [{"content": [{"type": odd}]}],
    }
    assert ("", "a", None, None, ("tools", 2)) in offered(found)
    choice = {"tool_choice": {"type": odd, "name": odd}, "function_call": {"name": odd}}
    config = {
        "toolConfig": {
            "toolChoice": {"tool": {"name": odd}},
            "functionCallingConfig": {"allowedFunctionNames": [odd, "a"]},
        }
    }
    told = left({**found, **choice, **config}, "a")
    assert told["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == [odd]
    assert {"tools": told["tools"], **{key: told[key] for key in choice}} == {
        "tools": [offer, {**A, "type": odd}],
        **choice,
    }


def left(request, *names):
    text = json.dumps(request)
    paths = {o.path for o in request_offers.offers(request_offers.lists(request)) if o.name in names}
    return json.loads(splice(text.encode(), request_offers.without(request, paths)))


def tool(name):
    return {"type": "function", "name": name}


A, B = {"name": "a"}, {"name": "b"}
HIDINGS = [
    ({"model": "m", "tools": [A, B], "tool_choice": {"type": "auto"}}, {"model": "m", "tools": [B], "tool_choice": {"type": "auto"}}),
    ({"model": "m", "tools": [A], "tool_choice": {"type": "any"}}, {"model": "m"}),
    ({"tools": [A, B], "tool_choice": {"type": "tool", "name": "a", "disable_parallel_tool_use": True}},
     {"tools": [B], "tool_choice": {"type": "auto", "disable_parallel_tool_use": True}}),
    ({"tools": [A, B], "tool_choice": {"type": "tool", "name": "b"}}, {"tools": [B], "tool_choice": {"type": "tool", "name": "b"}}),
    ({"tools": [{"type": "function", "function": A}], "tool_choice": "required", "parallel_tool_calls": True, "n": 1}, {"n": 1}),
    ({"tools": [{"type": "function", "function": A}, {"type": "function", "function": B}],
      "tool_choice": {"type": "function", "function": {"name": "a"}}},
     {"tools": [{"type": "function", "function": B}], "tool_choice": "auto"}),
    ({"tools": [tool("a"), {"type": "web_search"}], "tool_choice": tool("a")}, {"tools": [{"type": "web_search"}], "tool_choice": "auto"}),
    ({"tools": [tool("a"), tool("b")], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [tool("a"), tool("b")]}},
     {"tools": [tool("b")], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [tool("b")]}}),
    ({"tools": [tool("a"), tool("b")], "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": [tool("a")]}},
     {"tools": [tool("b")], "tool_choice": "auto"}),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [tool("a"), tool("b")]}]},
     {"tools": [{"type": "namespace", "name": "n", "tools": [tool("b")]}]}),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [tool("a")]}, tool("b")]}, {"tools": [tool("b")]}),
    ({"tools": [{"functionDeclarations": [A, B]}], "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["a", "b"]}}},
     {"tools": [{"functionDeclarations": [B]}], "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["b"]}}}),
    ({"tools": [{"functionDeclarations": [A, B]}], "tool_config": {"function_calling_config": {"allowed_function_names": ["a"]}}},
     {"tools": [{"functionDeclarations": [B]}], "tool_config": {}}),
    ({"toolConfig": {"tools": [{"toolSpec": A}, {"toolSpec": B}], "toolChoice": {"tool": {"name": "a"}}}},
     {"toolConfig": {"tools": [{"toolSpec": B}]}}),
    ({"toolConfig": {"tools": [{"toolSpec": A}, {"toolSpec": B}], "toolChoice": {"any": {}}}},
     {"toolConfig": {"tools": [{"toolSpec": B}], "toolChoice": {"any": {}}}}),
    ({"tools": [{"type": "namespace", "name": "n", "tools": [tool("a")]}], "tool_choice": "auto"}, {}),
    ({"functions": [A, B], "function_call": {"name": "a"}}, {"functions": [B], "function_call": "auto"}),
    ({"functions": [A], "function_call": "auto"}, {}),
    ({"input": [{"type": "additional_tools", "tools": [tool("a"), tool("b")]}]}, {"input": [{"type": "additional_tools", "tools": [tool("b")]}]}),
    ({"tools": [{"functionDeclarations": [A]}, {"functionDeclarations": [A, B]}], "toolConfig": {"x": 1}},
     {"tools": [{"functionDeclarations": [B]}], "toolConfig": {"x": 1}}),
    ({"tools": [{"functionDeclarations": [A], "googleSearch": {}}]}, {"tools": [{"googleSearch": {}}]}),
    ({"toolConfig": {"tools": [{"toolSpec": A}], "toolChoice": {"any": {}}}, "x": 1}, {"x": 1}),
]  # fmt: skip


@pytest.mark.parametrize(("request_", "reduced"), HIDINGS)
def test_a_request_without_denied_tools_is_whole(request_, reduced):
    assert left(request_, "a") == reduced


def test_other_bytes_stay():
    text = b'{ "big": 12345678901234567890123, "tools" : [ {"name":"a"} , {"name": "b",  "x":1.50} ] }'
    edits = request_offers.without(json.loads(text), {("tools", 0)})
    assert (
        splice(text, edits) == b'{ "big": 12345678901234567890123, "tools" : [ {"name": "b",  "x":1.50} ] }'
    )


def test_tools_that_a_conversation_refers_to_are_found():
    block = {"type": "tool_result", "content": [{"type": "tool_reference", "tool_name": "a"}]}
    assert request_offers.referred({"messages": [{"role": "user", "content": [block]}]}) == {"a"}
