"""A libnftables JSON transaction (libnftables-json(5)) as the text that nft(8) reads.

Its JSON knows no `socket cgroupv2`, and thousands of elements are read as text in three quarters of the time. Renders what `ruleset` writes, and nothing else: what it does not know is an error, never left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_NAMED = ("chain", "set", "counter")


def render(transaction: Mapping[str, Any]) -> str:
    """Return the commands, one a line. Raises KeyError or ValueError for what is not known here."""
    return "\n".join(map(_command, transaction["nftables"])) + "\n"


def _command(command: Mapping[str, Any]) -> str:
    ((verb, thing),) = command.items()
    ((kind, body),) = thing.items()
    if kind == "rule":
        expressions = " ".join(map(_statement, body["expr"]))
        return f"{verb} rule {body['family']} {body['table']} {body['chain']} {expressions}"
    if kind == "element":
        elements = ", ".join(map(_element, body["elem"]))
        return f"{verb} element {body['family']} {body['table']} {body['name']} {{ {elements} }}"
    if kind not in _NAMED:
        raise ValueError(f"a {kind}")
    where = [verb, kind, body["family"], body["table"], body["name"]]
    block = "; ".join(_block(kind, body)) if verb == "add" else ""
    return " ".join(where) + (f" {{ {block}; }}" if block else "")


def _block(kind: str, body: Mapping[str, Any]) -> Iterator[str]:
    if kind == "set":
        kinds = body["type"]
        yield f"type {kinds if isinstance(kinds, str) else ' . '.join(kinds)}"
        yield f"size {body['size']}"
        if "flags" in body:
            yield f"flags {','.join(body['flags'])}"
            yield f"timeout {body['timeout']}s"
            yield f"gc-interval {body['gc-interval']}s"
        match body.get("stmt", []):
            case []:
                pass
            case [{"counter": None}]:
                yield "counter"
            case others:
                raise ValueError(f"statements of a set: {others}")
    elif kind == "chain" and "hook" in body:
        yield f"type {body['type']} hook {body['hook']} priority {body['prio']}"
        yield f"policy {body['policy']}"


def _element(element: Any) -> str:
    if isinstance(element, Mapping) and "elem" in element:
        inner = element["elem"]
        return f'{_value(inner["val"])} comment "{inner["comment"]}"'
    return _value(element)


def _statement(statement: Mapping[str, Any]) -> str:
    ((kind, body),) = statement.items()
    match kind:
        case "match":
            operator = "" if body["op"] in {"==", "in"} else f"{body['op']} "
            if not operator and isinstance(body["left"], Mapping) and "&" in body["left"]:
                operator = "== "  # a mask alone would be read as a flag comparison
            return f"{_value(body['left'])} {operator}{_right(body)}"
        case "counter":
            return "counter" if body is None else f'counter name "{body}"'
        case "log":
            facts = (
                f"group {body['group']} snaplen {body['snaplen']} queue-threshold {body['queue-threshold']}"
            )
            return f'log prefix "{body["prefix"]}" {facts}'
        case "reject":
            code = f" {body['expr']}" if "expr" in body else ""
            return f"reject with {body['type']}{code}"
        case "goto" | "jump":
            return f"{kind} {body['target']}"
        case "mangle":
            return f"{_value(body['key'])} set {_value(body['value'])}"
        case "set":
            return f"{body['op']} {body['set']} {{ {_value(body['elem'])} }}"
        case "accept" | "drop" | "return":
            return kind
    raise ValueError(f"a {kind}")


def _right(body: Mapping[str, Any]) -> str:
    if isinstance(body["left"], Mapping) and "socket" in body["left"]:
        return f'"{body["right"]}"'
    return _value(body["right"])


def _value(value: Any) -> str:
    if not isinstance(value, Mapping):
        return str(value)
    ((kind, body),) = value.items()
    match kind:
        case "payload":
            return f"{body['protocol']} {body['field']}"
        case "exthdr":
            return f"{body['name']} {body['field']}"
        case "meta" | "ct":
            return f"{kind} {body['key']}"
        case "fib":
            return f"fib {body['flags']} {body['result']}"
        case "socket":
            return f"socket {body['key']} level {body['level']}"
        case "set":
            return f"{{ {', '.join(map(_value, body))} }}"
        case "concat":
            return " . ".join(map(_value, body))
        case "prefix":
            return f"{body['addr']}/{body['len']}"
        case "&" | "|":
            return f"{_value(body[0])} {kind} {_value(body[1])}"
    raise ValueError(f"a {kind}")
