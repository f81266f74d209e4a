"""The tools that a request offers to the model, in every shape the APIs have, and the request without some of them.

Read: Anthropic `tools`, OpenAI functions (plain, nested, custom, legacy), Responses namespaces and the items of `input` that bring
tools, Gemini `functionDeclarations`, Bedrock `toolSpec`. Whether an offered tool may be called is not decided here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from agentsh_net.core.dialects.anthropic.tool_changes import added
from agentsh_net.core.values.json_splice import DELETE
from agentsh_net.core.values.strict_json import Path

MAX_OFFERS: Final = 4096  # more than any API takes; what follows is not learned from, and not hidden
_DECLARATIONS: Final = ("functionDeclarations", "function_declarations")
_SCHEMAS: Final = (
    "input_schema",
    "inputSchema",
    "parameters",
    "parametersJsonSchema",
    "parameters_json_schema",
)
# Where references to tools stand in a conversation.
_REFERRING: Final = frozenset({"content", "messages", "tools", "tool", "tool_changes"})
# Tools of these types are the client's to run; every other type is the provider's own, or a server's (a connector).
_CLIENTS: Final = frozenset({"", "function", "custom", "namespace"})
# What an API refuses in a request that offers nothing.
_ABOUT_TOOLS: Final = ("tool_choice", "parallel_tool_calls", "toolConfig", "tool_config")


@dataclass(frozen=True, slots=True)
class Offer:
    """One offered tool and where it stands in the request; `path` is empty where it has to stay."""

    name: str
    namespace: str
    description: Any
    schema: Any
    path: Path


def lists(request: Mapping[str, Any]) -> tuple[tuple[Path, list[Any]], ...]:
    """Return the lists of tools in a request and where they stand."""
    found: list[tuple[Path, list[Any]]] = [
        ((key,), request[key]) for key in ("tools", "functions") if isinstance(request.get(key), list)
    ]
    config = request.get("toolConfig")
    if isinstance(config, Mapping) and isinstance(config.get("tools"), list):
        found.append((("toolConfig", "tools"), config["tools"]))
    items = request.get("input")
    for at, item in enumerate(items if isinstance(items, list) else ()):
        if isinstance(item, Mapping) and isinstance(item.get("tools"), list):
            found.append((("input", at, "tools"), item["tools"]))
    return tuple((path, tools) for path, tools in found if tools)


def offering(request: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return a request that offers tools; None where there is nothing to learn from it."""
    return request if lists(request) else None


def offers(found: tuple[tuple[Path, list[Any]], ...]) -> list[Offer]:
    """Return every tool in these lists that the client would run."""
    offered: list[Offer] = []
    for path, tools in found:
        for at, entry in enumerate(tools):
            offered += _entry(entry, (*path, at), "")
            if len(offered) > MAX_OFFERS:
                return offered[:MAX_OFFERS]
    return offered


def added_offers(request: Mapping[str, Any]) -> list[Offer]:
    """Return the tools that the conversation defines on its way, which the client would run; none can be taken out of it."""
    found: list[Offer] = []
    for _, tool in added(request):
        found += (replace(offer, path=()) for offer in _entry(tool.get("definition"), (), ""))
        if len(found) > MAX_OFFERS:
            return found[:MAX_OFFERS]
    return found


def _entry(entry: Any, path: Path, namespace: str) -> Iterator[Offer]:
    if not isinstance(entry, Mapping):
        return
    kind = entry.get("type", "")
    if kind == "namespace" and isinstance(entry.get("tools"), list) and not namespace:
        for at, child in enumerate(entry["tools"]):
            yield from _entry(child, (*path, "tools", at), str(entry.get("name", "")))
        return
    for key in _DECLARATIONS:
        if isinstance(entry.get(key), list):
            for at, child in enumerate(entry[key]):
                yield from _one(child, (*path, key, at), namespace)
            return
    if not isinstance(kind, str) or kind not in _CLIENTS:
        return
    inner = next(
        (entry[k] for k in ("function", "custom", "toolSpec") if isinstance(entry.get(k), Mapping)), entry
    )
    yield from _one(inner, path, namespace)


def _one(told: Any, path: Path, namespace: str) -> Iterator[Offer]:
    if not isinstance(told, Mapping) or not isinstance(told.get("name"), str):
        return
    schema = next((told[key] for key in _SCHEMAS if told.get(key) is not None), None)
    if isinstance(schema, Mapping) and isinstance(schema.get("json"), Mapping) and len(schema) == 1:
        schema = schema["json"]  # Bedrock
    yield Offer(told["name"], namespace, told.get("description"), schema, path)


def without(request: Mapping[str, Any], hidden: Collection[Path]) -> dict[Path, Any]:
    """Return the edits (json_splice.splice) that take these offers out of a request, and what must follow from it."""
    edits: dict[Path, Any] = {}
    removed = _closed(request, set(hidden))
    left_any = False
    for path, tools in lists(request):
        left = [at for at in range(len(tools)) if (*path, at) not in removed]
        left_any = left_any or bool(left)
        if left or path[0] == "input":
            edits |= dict.fromkeys((p for p in removed if p[:-1] == path), DELETE)
        else:
            edits[path[:1]] = DELETE
        edits |= dict.fromkeys(
            (p for p in removed if len(p) > len(path) + 1 and p[: len(path)] == path), DELETE
        )
    edits = {p: edit for p, edit in edits.items() if not any(p[:cut] in edits for cut in range(1, len(p)))}
    names = {offer.name for offer in offers(lists(request)) if offer.path in hidden}
    edits |= _choices(request, names, left_any=left_any)
    return edits


def _closed(request: Mapping[str, Any], hidden: set[Path]) -> set[Path]:
    """Return the hidden places, with those of namespaces and declarations of which nothing is left."""
    removed = set(hidden)
    for path, tools in lists(request):
        for at, entry in enumerate(tools):
            for key in ("tools", *_DECLARATIONS):
                children = entry.get(key) if isinstance(entry, Mapping) else None
                here: Path = (*path, at)
                if (
                    isinstance(children, list)
                    and children
                    and all((*here, key, n) in hidden for n in range(len(children)))
                ):
                    removed -= {(*here, key, n) for n in range(len(children))}
                    others = {"type", "name", "description", key} >= set(entry)
                    removed.add(here if others else (*here, key))
    return removed


def _choices(request: Mapping[str, Any], names: set[str], *, left_any: bool) -> dict[Path, Any]:
    """Return the edits of what forces or lists tools: nobody can be made to call what is not offered."""
    if not left_any:
        return dict.fromkeys(((key,) for key in (*_ABOUT_TOOLS, "function_call") if key in request), DELETE)
    edits: dict[Path, Any] = {}
    choice = request.get("tool_choice")
    if isinstance(choice, Mapping):
        allowed = choice.get("allowed_tools") if isinstance(choice.get("allowed_tools"), Mapping) else choice
        where: Path = ("tool_choice",) if allowed is choice else ("tool_choice", "allowed_tools")
        if _named(choice) in names:
            more = (
                {"disable_parallel_tool_use": choice["disable_parallel_tool_use"]}
                if "disable_parallel_tool_use" in choice
                else {}
            )
            edits[("tool_choice",)] = {"type": "auto", **more} if choice.get("type") == "tool" else "auto"
        elif isinstance(allowed, Mapping) and isinstance(allowed.get("tools"), list):
            out = [at for at, tool in enumerate(allowed["tools"]) if _named(tool) in names]
            if out and len(out) == len(allowed["tools"]):
                edits[("tool_choice",)] = "auto"
            else:
                edits |= {(*where, "tools", at): DELETE for at in out}
    call = request.get("function_call")
    if _named(call) in names:
        edits[("function_call",)] = "auto"
    return edits | _configured(request, names)


def _configured(request: Mapping[str, Any], names: set[str]) -> dict[Path, Any]:
    """Return the edits of what forces or lists tools in `toolConfig`: Bedrock's choice, Gemini's allowed names."""
    edits: dict[Path, Any] = {}
    for key in ("toolConfig", "tool_config"):
        config = request.get(key)
        choice = config.get("toolChoice") if isinstance(config, Mapping) else None
        if isinstance(choice, Mapping) and _named(choice.get("tool")) in names:
            edits[key, "toolChoice"] = DELETE
        for inner, listed in (
            ("functionCallingConfig", "allowedFunctionNames"),
            ("function_calling_config", "allowed_function_names"),
        ):
            calling = config.get(inner) if isinstance(config, Mapping) else None
            allowed = calling.get(listed) if isinstance(calling, Mapping) else None
            listed_names = allowed if isinstance(allowed, list) else []
            out = [at for at, name in enumerate(listed_names) if isinstance(name, str) and name in names]
            if out and len(out) == len(listed_names):
                edits[key, inner] = DELETE
            else:
                edits |= {(key, inner, listed, at): DELETE for at in out}
    return edits


def _named(choice: Any) -> str:
    """Return the tool that a choice names."""
    if not isinstance(choice, Mapping):
        return ""
    inner = next((choice[k] for k in ("function", "custom") if isinstance(choice.get(k), Mapping)), choice)
    name = inner.get("name")
    return name if isinstance(name, str) else ""


def referred(messages: Any) -> frozenset[str]:
    """Return the names that `tool_reference` blocks of a conversation refer to: the API refuses one that is not offered."""
    found: set[str] = set()
    waiting: list[Any] = [messages]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
        elif isinstance(value, Mapping):
            if value.get("type") == "tool_reference":
                found |= {value[key] for key in ("tool_name", "name") if isinstance(value.get(key), str)}
            waiting += (item for key, item in value.items() if key in _REFERRING)
    return frozenset(found)
