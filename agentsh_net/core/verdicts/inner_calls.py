"""The calls that stand within the arguments of another: of wrappers that run several at once, and of programs that call tools.

OpenAI's models write `multi_tool_use.parallel` where a client did not offer it, OpenCode has `batch`, code-mode agents run programs.
A program's text shows only the names that stand in it as they are: whoever means to hide one from here can. What a call means, and
whether it is allowed, is not decided here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from agentsh_net.core.model import ToolCall
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.values.members import plain
from agentsh_net.core.verdicts.given import parsed

# Wrappers that are nothing else: what cannot be read of them is no call that could be let pass.
_PARALLEL: Final = frozenset(
    {"multi_tool_use.parallel", "multi_tool_use_parallel", "multi_tool_use__parallel"}
)
# Names that wrappers have, and other tools too.
_BATCH: Final = frozenset(
    {"parallel", "batch", "batch_tool", "multi_tool_use", "run_parallel", "parallel_tool_calls"}
)
# Tools that run programs which may call tools.
_CODE: Final = frozenset(
    {
        "program", "exec", "js_repl", "repl", "code", "python", "javascript", "code_execution", "code_interpreter", "execute_code",
        "run_code", "execute_javascript", "run_javascript", "execute_python", "run_python",
    }
)  # fmt: skip
_KNOWN: Final = _PARALLEL | _BATCH | _CODE | {f"functions.{name}" for name in _PARALLEL | _BATCH | _CODE}
_SCRIPTS: Final = frozenset({"code", "input", "script", "source", "program", "javascript", "js", "python"})

_LISTS: Final = frozenset({"tooluses", "toolcalls", "calls", "invocations"})
_RECIPIENT: Final = "recipientname"  # names a tool in nobody's arguments but a wrapper's
_NAMES: Final = (_RECIPIENT, "toolname", "tool", "name", "functionname", "function")
_ARGUMENTS: Final = ("parameters", "arguments", "input", "args", "params")
_OFFERED: Final = "functions."  # the namespace in which OpenAI's models know the tools of a request

MAX_CALLS: Final = 64  # no client runs more at once; each is judged by itself
_MAX_DEPTH: Final = 4
MAX_PROGRAM: Final = 1 << 18  # characters that are searched: far more than a model writes into one call

_MANGLED: Final = re.compile(r"\bmcp(?:__|--|_)\w[\w.-]{0,200}")
_MEMBER: Final = re.compile(
    r"\b(?:tools|functions|mcp|servers)\s*(?:\?\.|\.|\[\s*[\"'`])\s*([\w$-]{1,128})(?:[\"'`]\s*\])?"
    r"(?:\s*(?:\?\.|\.|\[\s*[\"'`])\s*([\w$-]{1,128})(?:[\"'`]\s*\])?)?\s*\("
)
_ASKED: Final = re.compile(
    r"(?i:call_?(?:mcp_?)?tool|invoke_?tool|run_?tool|use_?mcp_?tool)\s*\(\s*[\"'`]([^\"'`\n]{1,128})[\"'`]"
    r"(?:\s*,\s*[\"'`]([^\"'`\n]{1,128})[\"'`])?"
)


def inner_calls(call: ToolCall) -> tuple[ToolCall, ...]:
    """Return the calls within a call's arguments, in order; none where it is no wrapper.

    A family of tools comes first: what denies it denies each of them. It is `hypothetical`, as one that is read out of a program's text
    is. One with a flaw stands for what cannot be read.
    """
    if call.toolset:
        family = replace(call, name=call.toolset, toolset="", hypothetical=True)
        return (family, *inner_calls(replace(call, toolset="")))
    if call.server_name or not (_has_list(call.input) or fold(call.name) in _KNOWN):
        return ()  # nearly every call
    name = fold(f"{call.namespace}.{call.name}" if call.namespace else call.name).removeprefix(_OFFERED)
    if name in _CODE:
        return tuple(_of_program(call))
    found = tuple(_listed(call, name, 0))
    if len(found) > MAX_CALLS:
        return (_unreadable(call, "more calls within it than can be judged"),)
    if not found and name in _PARALLEL and (call.doubt or call.input not in (None, "", {})):
        return (_unreadable(call, "the calls within it cannot be read"),)
    return found


def wraps_alone(inner: tuple[ToolCall, ...]) -> bool:
    """Say whether a call with these in it is nothing but them: a wrapper's, and no program."""
    return not all(each.hypothetical for each in inner)


def names_recipients(call: ToolCall) -> bool:
    """Say whether the arguments are a wrapper's, whatever tool they are given to."""
    return isinstance(call.input, Mapping) and any(
        plain(key) in _LISTS and any(_RECIPIENT in entry for entry in map(_folded, _entries(item)))
        for key, item in call.input.items()
    )


def _has_list(value: Any) -> bool:
    if isinstance(value, dict):
        for item in value.values():  # a loop and not any(): this runs for every call
            if type(item) is list:
                return True
    return False


def _listed(call: ToolCall, name: str, depth: int) -> Iterator[ToolCall]:
    value = call.input
    if not isinstance(value, Mapping):
        return
    known = name in _PARALLEL or name in _BATCH
    for key, item in value.items():
        if not isinstance(item, list) or plain(key) not in _LISTS:
            continue
        for at, entry in enumerate(item[: MAX_CALLS + 1]):
            fields = _folded(entry)
            if known or _RECIPIENT in fields:
                yield from _entry(call, fields, f"{call.call_id}#{at}", depth)


def _entry(call: ToolCall, fields: Mapping[str, Any], call_id: str, depth: int) -> Iterator[ToolCall]:
    """Yield what one entry may call: under each name that it gives."""
    named = [fields[key] for key in _NAMES if fields.get(key) is not None]
    texts = dict.fromkeys(name for name in named if isinstance(name, str) and name.strip())
    if not texts or len(texts) < len(set(map(str, named))):
        yield _unreadable(call, "a call within it has no name")
        return
    given = [fields[key] for key in _ARGUMENTS if key in fields]
    doubt = "two arguments for one call within another" if len(given) > 1 else call.doubt
    for text in texts:
        told = text.strip()
        bare = told[len(_OFFERED) :] if fold(told).startswith(_OFFERED) else told
        space, _, last = bare.partition(".")
        spaced = bool(space and last) and fold(bare) not in _PARALLEL
        inner = replace(
            call,
            name=last if spaced else bare,
            namespace=space if spaced else "",
            call_id=call_id,
            input=parsed(given[0]) if given else None,
            doubt=doubt,
            shown=None,
        )
        within = tuple(_listed(inner, fold(bare), depth + 1)) if depth < _MAX_DEPTH else ()
        if depth >= _MAX_DEPTH:
            yield _unreadable(call, "calls within each other, too deep to judge")
        elif within:
            yield from within
        elif fold(bare) in _PARALLEL:
            yield _unreadable(inner, "the calls within it cannot be read")
        else:
            yield inner


def _of_program(call: ToolCall) -> Iterator[ToolCall]:
    """Yield what the text of a program names."""
    names: dict[tuple[str, str], None] = {}
    for text in _texts(call.input):
        names |= dict.fromkeys(("", match[0]) for match in _MANGLED.finditer(text))
        for pattern in (_MEMBER, _ASKED):
            for match in pattern.finditer(text):
                names["", match[1]] = None
                if match[2]:
                    names[match[1], match[2]] = None
    for space, name in list(names)[:MAX_CALLS]:
        yield replace(
            call,
            name=name,
            namespace=space,
            input=None,
            doubt="its arguments are made by a program",
            hypothetical=True,
            shown=None,
        )


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value[:MAX_PROGRAM]
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, str) and plain(key) in _SCRIPTS:
                yield item[:MAX_PROGRAM]


def _unreadable(call: ToolCall, why: str) -> ToolCall:
    return replace(call, flaw=call.flaw or why)


def _entries(value: Any) -> list[Any]:
    return value[: MAX_CALLS + 1] if isinstance(value, list) else []


def _folded(entry: Any) -> dict[str, Any]:
    return {plain(key): item for key, item in entry.items()} if isinstance(entry, Mapping) else {}
