"""A report is in force, told and stored, or it changes nothing; what one client was shown takes nothing away from what is known."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest
from staging import Stage, policy

from agentsh_net.core import snapshot
from agentsh_net.core.errors import StoreError
from agentsh_net.core.trust.identity import Aspect
from agentsh_net.servers import inventory, reports
from agentsh_net.servers.reports import Reports

LOG = logging.getLogger("test.reports")


class Reported(Stage):
    def __init__(self, *denied: str) -> None:
        super().__init__(policy(*denied, a="10.9.0.1"), {})
        self.reports = Reports(self.current, self.disk, emit=self.events.append, log=LOG)  # type: ignore[arg-type]

    def take(self, **report: Any) -> None:
        asyncio.run(self.reports.take({"server_id": "a", "ok": True, "error": "", **report}))

    @property
    def tools(self) -> list[str]:
        return [tool.name for tool in self.current.snapshot.registry.tools_of("a")]

    @property
    def told(self) -> list[str]:
        return [event.type for event in self.events]


def test_tools_are_in_force_told_and_stored() -> None:
    here = Reported()
    here.take(tools=[{"name": "x"}], era="2025-06-18", instructions="Be kind.")
    assert here.tools == ["x"]
    assert here.told == ["mcp_server_seen", "mcp_tool_seen"]
    assert [line.partition(" with")[0] for line in here.log] == ["workers told 2"]
    assert len(here.disk.changes) == 1
    assert here.reports.last["a"] == {"server_id": "a", "ok": True, "error": "", "era": "2025-06-18"}


def test_the_same_report_again_changes_nothing() -> None:
    here = Reported()
    for _ in range(2):
        here.take(tools=[{"name": "x"}])
    assert here.current.snapshot.generation == 2
    assert here.told == ["mcp_tool_seen"]


def test_who_waits_for_servers_to_be_introduced_waits_for_each_that_is_asked_and_unheard_of() -> None:
    here = Reported()
    report = {"server_id": "a", "ok": True, "error": "", "tools": [{"name": "x"}]}

    async def waits(report: dict[str, Any]) -> list[str]:
        reports = here.reports
        order: list[str] = []
        waiting = asyncio.create_task(reports.introduced())
        waiting.add_done_callback(lambda _: order.append("introduced"))
        await asyncio.sleep(0)
        order.append("waits" if not waiting.done() else "knows")
        await reports.take(report)
        await waiting
        return order

    assert asyncio.run(waits(report)) == ["waits", "introduced"]
    assert asyncio.run(waits(report)) == ["knows", "introduced"]
    here = Reported()
    assert asyncio.run(waits({"server_id": "a", "ok": False, "error": "refused"})) == ["waits", "introduced"]


def test_who_waits_for_servers_that_are_asked_anew_waits_for_those_that_are_known_too() -> None:
    here = Reported()
    report = {"server_id": "a", "ok": True, "error": "", "tools": [{"name": "x"}]}

    async def waits() -> None:
        await here.reports.take(report)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await here.reports.introduced(anew=True)
        waiting = asyncio.create_task(here.reports.introduced(anew=True))
        await asyncio.sleep(0)
        await here.reports.take(report)
        await waiting

    asyncio.run(waits())


def test_nobody_waits_for_a_server_that_policy_denies() -> None:
    async def introduced(here: Reported) -> None:
        async with asyncio.timeout(0.05):
            await here.reports.introduced()

    asyncio.run(introduced(Reported("a")))
    with pytest.raises(TimeoutError):
        asyncio.run(introduced(Reported()))


def test_what_one_client_was_shown_leaves_the_rest_as_it_was() -> None:
    here = Reported()
    here.take(tools=[{"name": "x"}, {"name": "y"}])
    here.take(tools=[{"name": "x", "title": "new"}, "no definition"], partial=True)
    assert here.tools == ["x", "y"]
    assert here.told[2:] == ["mcp_tool_changed"]


def test_a_failure_is_said_once_until_it_is_another(caplog: pytest.LogCaptureFixture) -> None:
    here = Reported()
    for error in ("refused", "refused", "timeout"):
        here.take(ok=False, error=error)
    assert [record.message.rpartition(": ")[2] for record in caplog.records] == ["refused", "timeout"]
    assert here.reports.last["a"]["error"] == "timeout"


def test_a_server_that_failed_because_it_is_another_is_told_of() -> None:
    here = Reported()
    here.take(tools=[], tls_fingerprint="sha256:" + "1" * 64)
    here.take(ok=False, error="its certificate changed", tls_fingerprint="sha256:" + "2" * 64)
    assert here.told == ["mcp_server_seen", "mcp_server_changed"]


def test_a_certificate_that_the_gateway_saw_is_held_against_the_pin_and_nothing_else_changes() -> None:
    here = Reported()
    here.take(tools=[{"name": "x"}], tls_fingerprint="sha256:" + "1" * 64)
    here.take(ok=False, tools=[], partial=True, tls_fingerprint="sha256:" + "2" * 64)
    assert here.told == ["mcp_server_seen", "mcp_tool_seen", "mcp_server_changed"]
    assert here.tools == ["x"]
    assert here.reports.last["a"]["ok"] is True


@pytest.mark.parametrize("report", [{"tools": "many"}, {"tools": None}, {"server_id": "nobody", "tools": []}])
def test_what_is_no_report_of_a_declared_server_changes_nothing(report: dict[str, Any]) -> None:
    here = Reported()
    here.take(**report)
    assert (here.tools, here.told, here.disk.changes) == ([], [], [])


def test_what_cannot_be_stored_is_in_force_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    here = Reported()
    here.disk.broken = StoreError("the disk is full")
    here.take(tools=[{"name": "x"}])
    assert here.tools == ["x"]
    assert "in force but not stored: the disk is full" in caplog.text


def test_a_list_that_is_refused_is_the_reason_in_status_and_what_was_known_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here = Reported()
    here.take(tools=[{"name": "x"}])
    here.take(tools=[{"name": f"t{n}"} for n in range(inventory.MAX_TOOLS + 1)])
    last = here.reports.last["a"]
    assert (last["ok"], last["error"]) == (False, "its list has more than 5000 tools, or is none")
    assert "its tools cannot be listed: its list has more than 5000 tools" in caplog.text
    assert here.tools == ["x"]
    assert here.told == ["mcp_tool_seen"]


def test_what_else_cannot_be_listed_is_the_servers_state_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    here = Reported()
    for _ in range(2):
        here.take(tools=[{"name": "x"}], unlisted="no answer to prompts/list within 30 s")
    assert here.reports.last["a"]["unlisted"] == "no answer to prompts/list within 30 s"
    assert caplog.text.count("not all it offers can be listed: no answer to prompts/list") == 1
    here.take(tools=[{"name": "x"}], unlisted="")
    assert here.reports.last["a"]["unlisted"] == ""


def test_a_server_that_changes_its_tools_without_end_does_not_fill_the_audit_trail(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reports, "CHANGES", 5)
    here = Reported()
    for number in range(20):
        here.take(tools=[{"name": "x", "title": str(number)}])
    assert here.told.count("mcp_tool_changed") < 8
    (lost,) = [event for event in here.events if event.type == "events_lost"]
    assert "a causes more than 1 events a second" in lost.reason
    assert here.tools == ["x"]


def test_prompts_are_told_and_stored_and_nobody_who_judges_has_to_hear_of_them() -> None:
    here = Reported()
    asyncio.run(here.reports.take({"server_id": "a", "listed": {"prompts": {"p": {"name": "p"}}}}))
    assert here.told == ["mcp_server_seen"]
    assert here.current.snapshot.generation == 1
    assert (len(here.disk.changes), here.log) == (1, [])
    known = here.current.snapshot.pins.identity("a", Aspect.PROMPTS)
    assert known is not None and known.state == "trusted"
    assert snapshot.encode(here.current.snapshot)["identities"] == []


def test_a_list_of_who_is_not_declared_is_nothing() -> None:
    here = Reported()
    asyncio.run(here.reports.take({"server_id": "b", "listed": {"prompts": {"p": {"name": "p"}}}}))
    assert (here.told, here.disk.changes) == ([], [])
