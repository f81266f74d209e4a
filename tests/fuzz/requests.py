"""Requests of every API with odd keys, types, spellings and sizes, and their laws: nothing raises, and how fast one is read decides nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

from fuzz import grammar, readers

from agentsh_net.core.dialects import foreign_connectors, request_connectors, request_offers
from agentsh_net.core.dialects.base import RequestFacts
from agentsh_net.core.dialects.catalog import WIRES
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import json_splice
from agentsh_net.core.verdicts.connectors import Reach

URL: Final = "https://a.test/"
FUNCTION: Final = {"type": "function", "name": "mcp__fs__drop", "description": "d", "parameters": {}}
BODIES: Final[tuple[dict[str, Any], ...]] = (
    {
        "model": "m", "stream": True, "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
        "mcp_servers": [{"type": "url", "name": "a", "url": URL, "tool_configuration": {"allowed_tools": ["b"]}}],
        "tools": [{"type": "mcp_toolset", "mcp_server_name": "a", "configs": {"b": {"enabled": True}}}],
    },
    {"model": "m", "stream": True, "tools": [{"name": "Read", "description": "d", "input_schema": {}}], "tool_choice": {"type": "tool", "name": "Read"}},
    {
        "thread": {"type": "continue"}, "mcp_servers": [{"name": "a", "url": URL}],
        "messages": [
            {"role": "user", "content": [
                {"type": "tool_addition", "tool": {"definition": {"name": "n", "mcp_server_name": "a"}}},
                {"type": "compaction", "tool_changes": [{"type": "tool_addition", "tool": {"server_name": "a"}}]},
                {"type": "tool_reference", "tool_name": "n"},
            ]},
        ],
    },
    {"requests": [{"custom_id": "c", "params": {"model": "m", "mcp_servers": [{"name": "a", "url": URL}]}}]},
    {
        "input": [{"type": "mcp_approval_request", "id": "r", "name": "drop", "server_label": "a", "arguments": "{}"},
                  {"type": "mcp_approval_response", "approve": True, "approval_request_id": "r"}, {"tools": [FUNCTION]}],
        "tools": [{"type": "mcp", "server_label": "a", "server_url": URL, "require_approval": "never", "allowed_tools": {"tool_names": ["b"]}},
                  {"type": "connector", "connector_id": "gmail"}, {"type": "namespace", "name": "mcp__fs", "tools": [FUNCTION]}],
        "stream": True, "prompt": {"id": "p"},
    },
    {"model": "m", "stream": True, "input": "x", "tools": [FUNCTION], "tool_choice": {"type": "allowed_tools", "tools": [{"name": "mcp__fs__drop"}]}},
    {"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}], "functions": [{"name": "g"}],
     "function_call": {"name": "g"}, "tool_choice": {"type": "function", "function": {"name": "f"}}, "stream": True},
    {"contents": [], "tools": [{"mcpServers": [{"name": "a", "streamableHttpTransport": {"url": URL}}]}, {"functionDeclarations": [{"name": "f"}]}],
     "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": ["f"]}}},
    {"agent": "x", "tools": [{"type": "mcp_server", "name": "a", "url": URL}], "stream": True},
    {"messages": [], "toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {}}}}], "toolChoice": {"tool": {"name": "f"}}},
     "additionalModelRequestFields": {"mcp_servers": [{"name": "a", "url": URL}]}},
    {"integrations": ["mcp/a", {"id": "mcp/b"}], "session": {"tools": [{"type": "mcp", "server_url": URL}]}},
)  # fmt: skip

# What stands in the place of a value.
_DEEP: Any = "x"
for _ in range(300):
    _DEEP = [_DEEP]
VALUES: Final = (
    None, True, False, 0, 1, -1, 1.5, "", "x", " mcp ", "mcp", "MCP", "\u00a0mcp", "mcp\n", "m\u017fp", "connector", "true", "mcp_tool\u017fet", "\ud800",
    10**30, -(2**63) - 1, [], {}, [[]], [{}], [None], {"": None}, {"type": []}, [{"type": {}, "name": "n"}], [{"name": []}], [{"name": {}}],
    {"name": ["n"]}, [7], ["\ud800"], {"x": {"y": []}}, URL, [URL], {"type": "mcp"}, {"type": "mcp_toolset"}, {"json": {}}, _DEEP,
)  # fmt: skip


def body(c: grammar.Choices) -> bytes:
    """Return a request: honest as long as every byte is zero."""
    made = _spelled(c.pick(BODIES), c, 0)
    how = c.byte()
    if how & 3 == 3:  # long, so that what is read of long ones alone is read
        filler = json.dumps("mcp__fs__drop " * 5200 if how & 4 else "x" * (64 << 10))
        made = '{"system":' + filler + "," + made[1:] if how & 8 else made[:-1] + ',"system":' + filler + "}"
    if how >= 240:
        made = c.pick(("\ufeff", " \n", "\u00a0", "[", "x", "\0")) + made
    elif how >= 224:
        made += c.pick(("\n", "{}", "]", "\u00a0", "x", ',"tools":[]}'))
    return made.encode("utf-8", "surrogatepass")


def _spelled(value: Any, c: grammar.Choices, depth: int) -> str:
    how = c.byte()
    if how >= 244:
        return _told(c.pick(VALUES))
    if how == 243:
        return str(c.pick(("NaN", "1e400", "-Infinity", "9" * 5000, '"\\ud800"', "{", "")))
    if isinstance(value, list):
        items = [_spelled(item, c, depth + 1) for item in value]
        if how >= 232:
            items.insert(how % (len(items) + 1), _told(c.pick((*VALUES, *BODIES))))
        return "[" + ",".join(items) + "]"
    if not isinstance(value, dict):
        return _told(value)
    members = [_member(key, item, c, depth) for key, item in value.items()]
    if how >= 224:
        key, item = c.pick(_MEMBERS)
        members.insert(how % (len(members) + 1), _member(key, item, c, depth))
    return "{" + ",".join(member for member in members if member) + "}"


def _member(key: str, value: Any, c: grammar.Choices, depth: int) -> str:
    how = c.byte()
    name = json.dumps(key)
    if how >= 248:
        return ""
    text = _spelled(value, c, depth + 1)
    if how >= 236:
        return ",".join(f"{each}:{text}" for each in (json.dumps(_other(key, c)), name)[:: 1 - (how & 2)])
    if how >= 228:
        return f"{name}:{_told(c.pick(VALUES))},{name}:{text}"
    if how >= 220:
        return f'"\\u{ord(key[0]):04x}{key[1:]}" : {text}'
    return f"{json.dumps(_other(key, c)) if how >= 196 else name}:{text}"


def _other(key: str, c: grammar.Choices) -> str:
    """Return a key that is nearly this one."""
    camel = "".join(part.title() if at else part for at, part in enumerate(key.split("_")))
    return str(
        c.pick(
            (
                key.upper(), key.title(), key + "s", "my_" + key, key[:-1], key[1:], camel, key + " ", key.replace("_", ""), key.replace("s", "\u017f"),
                "tools", "Toolset", key[:1].upper() + key[1:], "",
            )
        )
    )  # fmt: skip


def _told(value: Any) -> str:
    return json.dumps(value)


def _all_members(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [pair for key, item in value.items() for pair in ((key, item), *_all_members(item))]
    return [pair for item in value for pair in _all_members(item)] if isinstance(value, list) else []


_MEMBERS: Final = [pair for one in BODIES for pair in _all_members(one)]

READERS: Final[dict[str, Callable[[bytes], RequestFacts]]] = {
    "foreign": foreign_connectors.read,
    **{f"{api}-{at}": wire.request for api, wires in WIRES.items() for at, wire in enumerate(wires)},
}
# And batches: what tools are offered there is not learned.
_OFFER_NOTHING: Final = frozenset({"foreign", "anthropic-1"})
_REACHES: Final = (
    Reach(confined=True, known=True, allowed=("b",), denied=("c",)),
    Reach(confined=True),
    Reach(confined=True, known=True, allowed=("b",), by_arguments=True),
)


def grown(data: bytes) -> None:
    """Run a request that the grammar makes through the laws."""
    check(body(grammar.Choices(data)))


def check(data: bytes) -> None:
    """Run one request through the laws, in every dialect. Raises AssertionError where one is broken."""
    value = readers.loads(data)
    strictly = _escaped(data)
    for name, read in READERS.items():
        facts = read(data)
        if facts.fault is None or not facts.fault.cut:
            found = {connector.url for connector in facts.connectors}
            for url in _servers(name, value):
                assert url in found, (name, url, facts)
        if strictly:
            _check_alike(name, facts, read(strictly))
        if facts.parsed is not None:
            _check_consequences(data, facts)


def _escaped(data: bytes) -> bytes:
    """Return a request that says the same with an escape in it, so that it is read by the strict one of two ways; empty where that is none."""
    head, mark, rest = data.partition(b"{")
    return head + mark + b'"\\u0078-y":0,' + rest if rest[:1] == b'"' else b""


def _check_alike(name: str, fast: RequestFacts, strict: RequestFacts) -> None:
    if strict.fault is not None:
        return
    assert fast == strict, f"{name}: {fast} is not {strict}"
    assert name in _OFFER_NOTHING or _offered(fast) == _offered(strict), name


def _offered(facts: RequestFacts) -> list[tuple[str, str]]:
    found = request_offers.offers(request_offers.lists(facts.parsed or {}))
    return [(offer.namespace, offer.name) for offer in found if offer.path[0] == "tools"]  # every API's


def _check_consequences(data: bytes, facts: RequestFacts) -> None:
    request = facts.parsed
    assert request is not None
    found = request_offers.offers(request_offers.lists(request))
    request_offers.added_offers(request)
    request_offers.referred(request)
    for hidden in ({offer.path for offer in found}, {offer.path for offer in found[:1]}):
        _spliced(data, request_offers.without(request, hidden))
    for reach in _REACHES:
        try:
            edits = request_connectors.confined(request, lambda label, address, reach=reach: reach)
        except request_connectors.ConfinementError:
            continue
        _spliced(data, edits)


def _spliced(data: bytes, edits: Any) -> None:
    try:
        json_splice.splice(data, edits)
    except ProtocolError:
        return


def _servers(name: str, value: Any) -> list[str]:
    """Return the servers that json finds where an API has them."""
    if not isinstance(value, dict):
        return []
    urls: list[Any] = []
    match name:
        case "anthropic-0":
            urls = [s.get("url") for s in _dicts(value.get("mcp_servers"))]
        case "openai-1":
            urls = [t.get("server_url") for t in _dicts(value.get("tools")) if t.get("type") == "mcp"]
        case "gemini-0" | "gemini-1":
            for tool in _dicts(value.get("tools")):
                for server in _dicts(tool.get("mcpServers")):
                    transport = server.get("streamableHttpTransport")
                    urls.append(transport.get("url") if isinstance(transport, dict) else None)
        case _:
            pass
    return [url for url in urls if isinstance(url, str) and url]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
