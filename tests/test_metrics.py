"""The daemon's numbers tell what happened and what is in force, name nobody, and say what is missing."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from running import Running, awaited, running

from agentsh_net.core.audit import events


def policy(**more: Any) -> dict[str, Any]:
    return {"proxy": {"port": 0}, "metrics": {"listen": "127.0.0.1", "port": 0}, **more}


def get(here: Running, path: str) -> tuple[int, str]:
    url = here.status()["metrics"]["listen"] + path
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def value(text: str, sample: str) -> float | None:
    match = re.search(rf"^{re.escape(sample)} (\S+)$", text, re.MULTILINE)
    return float(match[1]) if match else None


def test_what_happens_is_counted_and_served_by_a_process_without_privileges(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        secret = "weather-of-alice"
        here.on_loop(lambda: here.daemon.emit(events.ToolCallIntercepted(action="block", tool_name=secret)))
        here.on_loop(
            lambda: here.daemon.emit(
                events.NetworkConnection(action="block", layer="ebpf", remote_host=secret)
            )
        )
        text = awaited(
            lambda: (
                (t := get(here, "/metrics")[1])
                and value(t, 'agentsh_connections_total{layer="ebpf",action="block"}')
                and t
            )
        )
        assert value(text, 'agentsh_calls_total{layer="llm",action="block"}') == 1
        assert value(text, "agentsh_policy_generation") == 1
        assert value(text, 'agentsh_layer_in_force{layer="ebpf"}') == 1
        # Connects and packets that were refused: counts, not what is in the layer's tables.
        assert value(text, 'agentsh_layer_denied_total{layer="ebpf"}') == 0
        assert value(text, "agentsh_workers") == 1
        assert secret not in text
        assert get(here, "/readyz") == (200, "ready\n")
        state = json.loads(get(here, "/state.json")[1])
        assert state["problems"] == []
        assert [{"layer": "llm", "action": "block"}, 1] in state["metrics"]["agentsh_calls_total"]
        assert json.loads((tmp_path / "ready").read_text())["metrics"] == here.status()["metrics"]["listen"]


def test_a_request_shows_in_the_proxys_numbers(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        with urllib.request.urlopen(here.status()["proxy"]["listen"] + "/healthz") as answer:
            assert answer.status == 200
        awaited(lambda: value(get(here, "/metrics")[1], "agentsh_proxy_requests_total"))
        assert value(get(here, "/metrics")[1], 'agentsh_proxy_answer_seconds_bucket{le="+Inf"}') == 0


def test_what_is_missing_makes_it_not_ready(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        awaited(lambda: get(here, "/readyz")[0] == 200)
        here.kernel.broken, here.kernel.gone = "taken", True
        awaited(lambda: get(here, "/readyz") == (503, "layer ebpf is not in force\n"))
        assert value(get(here, "/metrics")[1], 'agentsh_layer_in_force{layer="ebpf"}') == 0


def test_off_there_is_no_page(tmp_path: Path) -> None:
    with running(tmp_path, {"proxy": {"port": 0}}) as here:
        assert here.status()["metrics"] == {"listen": ""}
