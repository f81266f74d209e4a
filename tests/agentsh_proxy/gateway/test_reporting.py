"""However many clients have a page listed, it is reported once; that it is another, or again what it was, is reported each time."""

from __future__ import annotations

from typing import Any

import pytest
from agentsh_proxy.gateway import reporting
from agentsh_proxy.gateway.reporting import Reporting


class Told(list[dict[str, Any]]):
    def __init__(self) -> None:
        self.generation = 1
        self.reporting = Reporting(self.append, lambda: self.generation)

    def page(self, server: str = "s", **prompts: str) -> None:
        listed = {name: {"name": name, "description": text} for name, text in prompts.items()}
        self.reporting({"server_id": server, "listed": {"prompts": listed}})


def test_a_page_is_reported_once_for_each_server_and_policy() -> None:
    told = Told()
    for _ in range(3):
        told.page(a="x")
    told.page("other", a="x")
    told.page(b="x")
    assert len(told) == 3
    told.generation = 2
    told.page(a="x")
    assert len(told) == 4


def test_each_change_of_a_page_is_reported_and_that_it_is_again_what_it_was() -> None:
    told = Told()
    for text in ("good", "bad", "good", "good", "bad"):
        told.page(a=text)
    assert [report["listed"]["prompts"]["a"]["description"] for report in told] == [
        "good",
        "bad",
        "good",
        "bad",
    ]


def test_what_is_said_of_tools_is_reported_each_time() -> None:
    told = Told()
    for _ in range(2):
        told.reporting({"server_id": "s", "ok": True, "tools": []})
    assert len(told) == 2


def test_whoever_lists_without_end_fills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reporting, "MAX_PAGES", 2)
    told = Told()
    for name in ("a", "b", "c", "a"):
        told.page(**{name: "x"})
    assert len(told) == 4
    assert len(told.reporting._pages) == 2
