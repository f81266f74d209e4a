"""`status` tells what is in force and where, and nothing that came from a secret."""

from __future__ import annotations

from pathlib import Path

from running import policy, running


def test_status_tells_what_is_in_force_and_where(tmp_path: Path) -> None:
    with running(tmp_path, policy()) as here:
        status = here.status()
    assert status["policy"]["mode"] == "enforce"
    assert status["layers"][0]["in_force"]
    assert status["store"]["path"] == str(here.folder / "events.db")
    evil, good = status["servers"]
    assert (evil["addresses"], evil["denied"], good["denied"]) == (["10.9.0.1"], True, False)
    assert status["proxy"]["listen"] == ""


def test_status_shows_no_path_of_a_provider_that_came_from_a_reference(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("k-secret")
    providers = {
        "anthropic": {"base_url": f"http://127.0.0.1:9/${{file:{tmp_path}/secret}}/v1"},
        "openai": {"base_url": "http://127.0.0.1:9/openai/v1"},
    }
    with running(tmp_path, {"proxy": {"port": 0, "providers": providers}}) as here:
        shown = here.status()["proxy"]["providers"]
    assert shown["anthropic"]["base_url"] == "http://127.0.0.1:9/..."
    assert shown["openai"]["base_url"] == "http://127.0.0.1:9/openai/v1"
