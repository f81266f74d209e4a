"""A policy file that changed takes effect or leaves the old policy in force, and either is told, once."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
from running import awaited, policy, running

from agentsh_net import reloading
from agentsh_net.config import policy_file
from agentsh_net.control.errors import ControlError


def test_an_edited_file_takes_effect_by_itself(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        here.write(policy(denied="good"))
        event = here.await_event("policy_reloaded")
        assert event["generation"] == 2
        assert here.kernel.text() == "tag 10.9.0.1:8000 evil\ndeny 10.9.0.2:0 good"
        assert here.status()["policy"]["digest"] == event["digest"]


def test_a_secrets_file_that_a_reload_began_to_read_is_watched_from_then_on(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("one")
    scheme = {"id": "s", "type": "http", "scheme": "bearer", "credential": f"${{file:{secret}}}"}
    with running(tmp_path, policy()) as here:
        here.write({**policy(denied="good"), "gateway": {"enabled": False, "security_schemes": [scheme]}})
        here.await_event("policy_reloaded", lambda e: e["generation"] == 2)
        secret.write_text("two")
        here.await_event("policy_reloaded", lambda e: e["generation"] == 3)


def test_a_broken_file_keeps_the_old_policy_and_says_every_problem(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        here.write({"sandbox": {"mcp": {"servers": 7, "nonsense": 1}}})
        event = here.await_event("policy_rejected")
        assert event["generation"] == 1
        assert any("sandbox.mcp.servers" in p for p in event["problems"])
        assert any("nonsense" in p for p in event["problems"])
        assert here.kernel.text().startswith("deny 10.9.0.1:0 evil")
        here.write(policy(denied="good"))
        assert here.await_event("policy_reloaded")["generation"] == 2


def test_a_kernel_that_refuses_the_plan_keeps_the_old_policy(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        here.kernel.broken = "no memory for the map"
        here.write(policy(denied="good"))
        assert "no memory" in here.await_event("policy_rejected")["reason"]
        assert here.status()["policy"]["generation"] == 1
        with pytest.raises(ControlError, match="no memory"):
            here.client.call("reload")
        assert here.events("policy_reloaded") == []
        here.kernel.broken = ""
        assert here.client.call("reload")["changed"]
        assert "deny 10.9.0.2:0 good" in here.kernel.text()


def test_what_the_host_refused_is_tried_again_though_no_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reloading, "RETRY", 0.05)
    opened, left = os.open, [errno.EMFILE, errno.EMFILE]

    def exhausted(name: Any, flags: int, *rest: Any, **named: Any) -> int:
        if left and str(name) == str(here.file) and flags == policy_file.FLAGS:
            raise OSError(left.pop(), os.strerror(errno.EMFILE), name)
        return opened(name, flags, *rest, **named)

    with running(tmp_path, policy()) as here:
        monkeypatch.setattr(policy_file.os, "open", exhausted)
        here.write(policy(denied="good"))
        assert "Too many open files: raise the limit" in here.await_event("policy_rejected")["reason"]
        assert here.await_event("policy_reloaded")["generation"] == 2
        assert len(here.events("policy_rejected")) == 1  # the same again is told once
        here.kernel.broken = "no memory for the map"
        here.write(policy(denied="evil"))
        awaited(lambda: len(here.events("policy_rejected")) == 2)
        here.kernel.broken = ""
        awaited(lambda: here.status()["policy"]["generation"] == 3)


def test_a_reload_without_a_change_changes_nothing(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        plans = len(here.kernel.plans)
        assert here.client.call("reload") == {
            "changed": False,
            "generation": 1,
            "digest": here.status()["policy"]["digest"],
            "pending": [],
        }
        assert len(here.kernel.plans) == plans


def test_a_setting_that_waits_for_the_next_start_is_told(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        here.write({**policy(), "proxy": {"mode": "disabled", "port": 1}})
        assert "proxy.port" in here.await_event("policy_reloaded")["reason"]
        assert here.status()["policy"]["pending"] == ["proxy.port"]


def test_status_tells_who_may_write_the_file_as_it_is_now(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        here.file.chmod(0o666)
        assert not here.client.call("reload")["changed"]
        assert any("chmod o-w" in note for note in here.status()["notes"])
        here.file.chmod(0o644)
        here.client.call("reload")
        assert not any("chmod o-w" in note for note in here.status()["notes"])


def test_what_waits_is_told_until_the_file_says_again_what_the_daemon_was_started_with(
    tmp_path: Path,
) -> None:
    with running(tmp_path, policy()) as here:
        here.write({**policy(), "proxy": {"mode": "disabled", "port": 1}})
        here.client.call("reload")
        here.write({**policy("good"), "proxy": {"mode": "disabled", "port": 1}})
        assert here.client.call("reload")["pending"] == ["proxy.port"]
        here.write(policy())
        assert here.client.call("reload")["pending"] == []


def test_a_file_that_stays_broken_is_told_of_once(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        for name in ("first", "second", "first"):
            here.write({"sandbox": {name: 1}})
            for _ in range(2):  # and a third time by itself, as the file changed
                with pytest.raises(ControlError, match=name):
                    here.client.call("reload")
        told = awaited(lambda: found if len(found := here.events("policy_rejected")) >= 3 else None)
        assert ["first" in str(event["problems"]) for event in told] == [True, False, True]


def test_a_file_that_is_mended_back_to_what_is_in_force_is_told(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        here.write({"sandbox": {"nonsense": 1}})
        here.await_event("policy_rejected")
        assert "nonsense" in here.status()["policy"]["refused"][0]
        here.write(policy())
        told = here.await_event("policy_reloaded")
        assert (told["generation"], told["digest"]) == (1, here.status()["policy"]["digest"])
        assert here.status()["policy"]["refused"] == []


def test_who_asks_by_a_signal_is_answered_in_the_log_though_nothing_is_new(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "test.daemon")
    with running(tmp_path, policy()) as here:
        here.on_loop(here.daemon.reload_soon)
        awaited(lambda: "in force already: policy" in caplog.text)
        here.write({"sandbox": {"nonsense": 1}})
        here.await_event("policy_rejected")
        here.on_loop(here.daemon.reload_soon)
        awaited(lambda: caplog.text.count("policy refused, generation 1 stays in force") == 2)
        assert len(here.events("policy_rejected")) == 1
        assert here.events("policy_reloaded") == []
