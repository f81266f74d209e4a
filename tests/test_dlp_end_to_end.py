"""DLP through the running product: two workers, an official SDK, a model that only ever sees tokens, and an audit without values."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from agentsh_proxy.llm.guarding import LONG
from model_server import Provider, serving, streamed, tool_use
from running import awaited, running

EMAIL, CARD = "alice@example.com", "4111 1111 1111 1111"
TOKEN = re.compile(r"DLP_[A-Z0-9]+_[A-Z2-7]{16}")


def echoed(asked: Any) -> Iterator[bytes]:
    """Write back the tokens that were asked about, a character at a time, and call a tool with them."""
    tokens = TOKEN.findall(json.dumps(asked))
    return streamed(
        " and ".join(tokens), tool_use("mcp__mail__send", call_id="t"), json.dumps({"to": tokens})
    )


@pytest.fixture
def model() -> Iterator[Provider]:
    with serving(echoed) as provider:
        yield provider


def test_a_model_works_with_tokens_and_the_agent_with_values(tmp_path: Path, model: Provider) -> None:
    policy = {
        "sandbox": {"mcp": {"servers": [{"id": "mail", "type": "stdio", "command": "mail"}]}},
        "proxy": {"port": 0, "workers": 2, "providers": {"anthropic": {"base_url": model.url}}},
        "dlp": {"mode": "tokenize"},
        "metrics": {"listen": "127.0.0.1", "port": 0},
    }
    with running(tmp_path, policy) as here:
        base = here.status()["proxy"]["listen"] + "/anthropic"
        # Connections of their own, so that both workers take some; a long request is searched in a process apart.
        for padding in ("", "", "", "\nwords" * (LONG // 6)):
            client = anthropic.Anthropic(api_key="k", base_url=base, max_retries=0)
            content = f"mail {EMAIL} about {CARD}{padding}"
            with client.messages.stream(
                model="m", max_tokens=9, messages=[{"role": "user", "content": content}]
            ) as stream:
                message = stream.get_final_message()
            assert message.content[0].text == f"{EMAIL} and {CARD}"
            assert message.content[1].input == {"to": [EMAIL, CARD]}
        assert len({tuple(TOKEN.findall(body.decode())) for _, body in model.asked}) == 1
        calls = awaited(lambda: len(found := here.events("mcp_tool_call_intercepted")) == 4 and found)
        assert {json.dumps(call["input"]) for call in calls} == {
            '{"to": ["[REDACTED:email]", "[REDACTED:credit_card]"]}'
        }
        counted = here.await_event("llm_request_redacted")
        assert (counted["mode"], counted["counts"]) == ("tokenize", {"email": 1, "credit_card": 1})
        assert here.on_loop(lambda: here.daemon.state.tally.redactions["email"]) == 4
    stored = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    for secret in (EMAIL.encode(), CARD.encode()):
        assert secret not in b"".join(body for _, body in model.asked)
        assert secret not in stored
