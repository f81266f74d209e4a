"""A call that is filled into a draft has the very event that it would have by itself, as text and as a value."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from agentsh_net.core.audit.drafts import Sheet, drawn_up
from agentsh_net.core.audit.events import ToolCalled
from agentsh_net.store.records import event_row

CALLED = ToolCalled(
    server_id="fs", tool_name="ls", reason='100 % of "them"', rule="%s %(id)s", via="shim", pid=7, uid=0, session_id="default",
)  # fmt: skip
NOW = "2026-01-01T00:00:00.000000Z"


def by_itself(called: ToolCalled, new: str, id_: Any, arguments: Any) -> dict[str, Any]:
    return replace(called, jsonrpc_id=id_, input=arguments).to_stamped_json(id=new, timestamp=NOW)


@pytest.mark.parametrize(
    ("id_", "arguments"),
    [(1, {}), ("a%s", {"path": '/100%/"\\\n', "n": -1.5}), (0, {"": [None, True, "ü%d"]})],
)
def test_a_filled_draft_is_the_event_of_the_call(id_: Any, arguments: Any) -> None:
    texts = [json.dumps(value, separators=(",", ":"), ensure_ascii=False) for value in (id_, arguments)]
    sheet = Sheet(NOW, ["e1", "e2"], [(drawn_up(CALLED.to_json()), texts[0], texts[1])] * 2)
    alone = [by_itself(CALLED, new, id_, arguments) for new in ("e1", "e2")]
    assert sheet.events() == alone
    for row, event in zip(sheet.rows(), alone, strict=True):
        assert row[:-1] == event_row(event)[:-1]
        assert json.loads(row[-1]) == event
        assert [*json.loads(row[-1])] == [*event], "the fields come in the same order"


@pytest.mark.parametrize(
    "change",
    [
        {"candidates": [{"server_id": "web", "tool_name": "ls"}]},
        {"tool_name": "l\ud800s"},
        {"server_id": "ü"},
    ],
)
def test_what_text_alone_does_not_tell_is_not_filled_in_as_text(change: dict[str, Any]) -> None:
    assert drawn_up(CALLED.to_json()).template
    assert drawn_up(CALLED.to_json() | change).template is None
