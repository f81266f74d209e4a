"""What the proxy says itself is a whole HTTP message with an error an SDK can show."""

from __future__ import annotations

import orjson
from agentsh_proxy.replies import error_body, reply

from agentsh_net.core.dialects.catalog import BY_NAME


def test_a_reply_is_whole_and_says_when_the_connection_ends():
    assert reply(200, b"{}", close=False) == (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    )
    assert b"\r\nConnection: close\r\n\r\n{}" in reply(413, b"{}", close=True)


def test_a_reply_to_head_has_the_length_and_not_the_body():
    said = reply(404, b"{}", close=False, bodiless=True)
    assert b"Content-Length: 2" in said
    assert said.endswith(b"\r\n\r\n")


def test_an_error_without_a_dialect_has_a_message():
    assert orjson.loads(error_body(404, "no such path", None)) == {
        "type": "error",
        "error": {"type": "not_found", "message": "agentsh-net: no such path"},
    }


def test_an_error_in_a_dialect_is_the_providers_own_shape():
    anthropic = orjson.loads(error_body(502, "gone", BY_NAME["anthropic"]))
    assert (anthropic["type"], anthropic["error"]["message"]) == ("error", "agentsh-net: gone")
    openai = orjson.loads(error_body(502, "gone", BY_NAME["openai"]))
    assert openai["error"]["message"] == "agentsh-net: gone"
    assert "type" not in openai
