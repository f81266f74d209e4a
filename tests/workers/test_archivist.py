"""Requests and answers reach the disk through real workers: as DLP lets them leave, without credentials, bounded, and listed."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from model_server import serving
from running import Running, awaited, running

from agentsh_net.control.errors import ControlError
from agentsh_net.core.configuration.settings import Retention
from agentsh_net.core.links.record_link import Kind, about, encode
from agentsh_net.store import queries
from agentsh_net.store.bodies import Bodies
from agentsh_net.workers import archivist as module
from agentsh_net.workers.archivist import Archivist

ANSWER = {"id": "msg_1", "type": "message", "content": [], "usage": {"input_tokens": 7, "output_tokens": 9}}


@pytest.fixture
def provider() -> Iterator[str]:
    with serving(lambda _: ANSWER, set_cookie="hunter2", request_id="req_1") as provider:
        yield provider.url


def policy(provider: str, mode: str = "embedded", **more: Any) -> dict[str, Any]:
    return {"proxy": {"port": 0, "mode": mode, "providers": {"anthropic": {"base_url": provider}}}, **more}


def ask(here: Running, text: str) -> None:
    body = json.dumps({"model": "claude", "messages": [{"role": "user", "content": text}]}).encode()
    url = here.status()["proxy"]["listen"] + "/anthropic/v1/messages?key=hunter2"
    request = urllib.request.Request(url, body, {"x-api-key": "hunter2", "content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert json.loads(answer.read()) == ANSWER


def listed(here: Running) -> list[dict[str, Any]]:
    return queries.page(here.folder / "events.db", "requests", {}).rows


def test_a_request_is_kept_as_dlp_lets_it_leave_and_without_credentials(
    tmp_path: Path, provider: str
) -> None:
    more = {"dlp": {"mode": "redact"}, "llm_storage": {"store_bodies": True}}
    with running(tmp_path, policy(provider, **more)) as here:
        ask(here, "mail alice@example.com")
        (row,) = awaited(lambda: listed(here))
        assert (row["provider"], row["model"], row["status"], row["outcome"]) == (
            "anthropic",
            "claude",
            200,
            "answered",
        )
        assert (row["input_tokens"], row["output_tokens"], row["request_id"]) == (7, 9, "req_1")
        assert (row["session_id"], row["path"], row["truncated"]) == (
            "default",
            "/v1/messages?key=[redacted]",
            False,
        )
        shown = here.client.call("llm.show", id=row["id"])
        assert "[REDACTED:email]" in shown["request"]["text"]
        assert json.dumps(ANSWER) in shown["answer"]["text"]
        with pytest.raises(ControlError):
            here.client.call("llm.show", id="../events.db")
    stored = b"".join(p.read_bytes() for p in tmp_path.rglob("*") if p.is_file())
    assert b"alice@example.com" not in stored
    assert b"hunter2" not in stored


def test_mcp_only_keeps_bodies_and_leaves_them_alone(tmp_path: Path, provider: str) -> None:
    with running(tmp_path, policy(provider, "mcp-only", dlp={"mode": "redact"})) as here:
        ask(here, "mail alice@example.com")
        (row,) = awaited(lambda: listed(here))
        assert "alice@example.com" in here.client.call("llm.show", id=row["id"])["request"]["text"]
        assert here.status()["proxy"]["mode"] == "mcp-only"


def test_off_nothing_is_kept_until_a_reload_says_so(tmp_path: Path, provider: str) -> None:
    with running(tmp_path, policy(provider)) as here:
        ask(here, "one")
        here.write(policy(provider, llm_storage={"store_bodies": True}))
        here.client.call("reload")
        ask(here, "two")
        (row,) = awaited(lambda: listed(here))
        assert "two" in here.client.call("llm.show", id=row["id"])["request"]["text"]


class Desk:
    """An archivist with its rows in a list."""

    def __init__(self, folder: Path, retention: Retention) -> None:
        self.rows: list[Any] = []
        self.archivist = Archivist(
            Bodies(folder), retention, self._change, logging.getLogger("test.archivist")
        )
        self.archivist.start()
        self.worker = self.archivist.attach()

    def _change(self, change: Any) -> Future[None]:
        self.rows += [row for sql, rows in change if sql.startswith("INSERT") for row in rows]
        return Future()

    def say(self, kind: Kind, payload: bytes = b"", number: int = 1) -> None:
        self.worker.sendall(b"".join(encode(kind, number, payload)))


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    it = Desk(tmp_path / "bodies", Retention(30, 500))
    yield it
    it.worker.close()
    it.archivist.stop()


def test_a_part_is_bounded_and_the_record_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PART", 100)
    desk.say(Kind.BEGIN, about({"model": "m"}))
    desk.say(Kind.REQUEST, b"r" * 50)
    for _ in range(3):
        desk.say(Kind.ANSWER, b"a" * 60)
    desk.say(Kind.END, about({"status": 200}))
    (row,) = awaited(lambda: desk.rows)
    assert row[-3:] == (50, 100, 1)


def test_a_worker_that_dies_leaves_what_it_said(desk: Desk) -> None:
    desk.say(Kind.BEGIN, about({"model": "m"}))
    desk.say(Kind.REQUEST, b"half a request")
    desk.worker.close()
    (row,) = awaited(lambda: desk.rows)
    assert "the worker ended" in row
    assert row[-3:] == (14, 0, 1)


@pytest.mark.parametrize(
    "said",
    [
        (Kind.REQUEST, b"of nothing"),
        (Kind.BEGIN, b"no json"),
        (Kind.END, about({})),
        (Kind.BEGIN, b'{"status":"x"}'),
    ],
)
def test_a_worker_that_talks_nonsense_is_not_listened_to(desk: Desk, said: tuple[Kind, bytes]) -> None:
    desk.say(*said)
    desk.worker.settimeout(60)
    assert desk.worker.recv(1) == b""
    assert desk.rows == []


def test_records_at_once_are_bounded(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 2)
    for number in range(3):
        desk.say(Kind.BEGIN, about({}), number)
    desk.worker.settimeout(60)
    assert desk.worker.recv(1) == b""
    assert len(awaited(lambda: desk.rows)) == 2


def test_what_is_too_much_goes_as_soon_as_it_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "bodies", Retention(30, 0.1))
    try:
        for number in range(20):
            desk.say(Kind.BEGIN, about({}), number)
            desk.say(Kind.ANSWER, b"a" * 20_000, number)
            desk.say(Kind.END, about({}), number)
        awaited(lambda: len(desk.rows) == 20)
        awaited(lambda: sum(p.stat().st_size for p in (tmp_path / "bodies").iterdir()) <= 105_000)
    finally:
        desk.worker.close()
        desk.archivist.stop()


def test_a_disk_that_refuses_is_told_once_and_the_rest_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "bodies").write_text("a file in the way")
    desk = Desk(tmp_path / "bodies", Retention(30, 500))
    try:
        for number in range(3):
            desk.say(Kind.BEGIN, about({}), number)
            desk.say(Kind.ANSWER, b"a", number)
            desk.say(Kind.END, about({"status": 200}), number)
        awaited(lambda: len(desk.rows) == 3)
        assert [record.message for record in caplog.records if "not stored" in record.message] == [
            "bodies are not stored: Not a directory"
        ]
    finally:
        desk.worker.close()
        desk.archivist.stop()
