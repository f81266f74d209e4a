"""Events of calls under a verdict that stands, drawn up once: of each further call only what is its own is filled in, as text.

Which calls may be told of so is `shims.call_log`'s business, who keeps the rows the store's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

from agentsh_net.core.values import jsontext

# What a call has of its own, in the order in which its event tells it.
OWN: Final = ("id", "timestamp", "jsonrpc_id", "input")

# Of the store: id, columns that are searched, the event as JSON.
Row = tuple[str, str, str, str, str, str, str, str]
Filled = tuple["Draft", str, str]  # the draft of a call, its JSON-RPC id and its arguments as compact JSON


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """An event of a tool's calls but for what is each one's own. `template` is None where it cannot be filled in as text."""

    event: Mapping[str, Any]
    template: str | None

    def row(self, new: str, now: str, id_: str, arguments: str) -> Row:
        """Return the row of a call."""
        event, text = self.event, self.template or ""
        return (
            new,
            event["type"],
            now,
            event["session_id"],
            event["action"],
            event["server_id"],
            event["tool_name"],
            text % (new, now, id_, arguments),
        )


@dataclass(frozen=True, slots=True)
class Sheet:
    """Calls of one session to one server, let through at one time, in their order; `ids` are those of their events."""

    now: str
    ids: Sequence[str]
    calls: Sequence[Filled]

    def rows(self) -> list[Row]:
        """Return the rows of the store."""
        now = self.now
        return [
            draft.row(new, now, id_, arguments)
            for new, (draft, id_, arguments) in zip(self.ids, self.calls, strict=True)
        ]

    def events(self) -> list[dict[str, Any]]:
        """Return the events, as JSON. Raises ValueError for arguments that not every reader takes."""
        own = orjson.loads("[" + ",".join(f"[{id_},{arguments}]" for _, id_, arguments in self.calls) + "]")
        return [
            {**draft.event, "id": new, "timestamp": self.now, "jsonrpc_id": id_, "input": arguments}
            for new, (draft, *_), (id_, arguments) in zip(self.ids, self.calls, own, strict=True)
        ]


def drawn_up(event: Mapping[str, Any]) -> Draft:
    """Return the draft of an event (as JSON) without what is each call's own."""
    columns = (event["session_id"], event["action"], event["server_id"], event["tool_name"])
    own = tuple(key for key in event if key in OWN)
    if own != OWN or event.get("candidates") or not "".join(columns).isascii():
        return Draft(event, None)
    texts = {"id": '"%s"', "timestamp": '"%s"', "jsonrpc_id": "%s", "input": "%s"}
    members = (f"{_text(key)}:{texts.get(key) or _text(value)}" for key, value in event.items())
    return Draft(event, "{" + ",".join(members) + "}")


def _text(value: Any) -> str:
    return jsontext.dumps(value).decode().replace("%", "%%")
