"""What client and server say to each other: one JSON object a line, `{"call", "args"}` and `{"ok", "result"}` or `{"ok", "error"}`.

Pure. Not its business: sockets, and what the calls mean.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError, KernelError, ProtocolError, StoreError
from agentsh_net.core.values import jsontext

MAX_REQUEST: Final = 1 << 20  # bytes a line: `explain` carries the arguments of one tool call
MAX_ANSWER: Final = 64 << 20  # bytes a line: a page of a query is 4 MiB and one event


@dataclass(frozen=True, slots=True)
class Request:
    """One call."""

    call: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Return the line of this request."""
        return jsontext.dumps({"call": self.call, "args": self.args}) + b"\n"


def decode_request(line: bytes) -> Request:
    """Return the request on a line. Raises ProtocolError."""
    try:
        value = jsontext.loads(line)
    except ValueError as error:
        raise ProtocolError(f"a request is one JSON object on a line: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("call"), str) or set(value) - {"call", "args"}:
        raise ProtocolError('a request is {"call": name, "args": {...}}')
    args = value.get("args", {})
    if not isinstance(args, dict):
        raise ProtocolError("args is an object")
    return Request(value["call"], args)


def encode_result(result: Any) -> bytes:
    """Return the line that answers a call that went well."""
    return jsontext.dumps({"ok": True, "result": result}) + b"\n"


def encode_error(error: ControlError) -> bytes:
    """Return the line that answers a call that did not."""
    return jsontext.dumps({"ok": False, "error": error.to_json()}) + b"\n"


def decode_answer(line: bytes) -> Any:
    """Return the result on a line. Raises ControlError if the line tells of one, ProtocolError if it is no answer."""
    try:
        value = jsontext.loads(line)
    except ValueError as error:
        raise ProtocolError(f"the daemon's answer is not JSON: {error}") from None
    match value:
        case {"ok": True, "result": result}:
            return result
        case {"ok": False, "error": {"kind": str(kind), "message": str(message)} as told}:
            raise ControlError(message, kind=kind, remedy=str(told.get("remedy", "")))
        case _:
            raise ProtocolError("the daemon's answer has neither a result nor an error")


def control_error(error: ConfigError | KernelError | ProtocolError | StoreError) -> ControlError:
    """Return what one of our errors is on the wire."""
    match error:
        case ConfigError():
            return ControlError(
                str(error), kind="config", remedy="mend the file; the policy before it stays in force"
            )
        case KernelError():
            return ControlError(str(error), kind="kernel", remedy=error.remedy)
        case StoreError():
            return ControlError(str(error), kind="store", remedy=error.remedy)
        case ProtocolError():
            return ControlError(str(error), kind="request")
