"""The opening of the request to the upstream is written once a head, and says at which paths a body has to be whole."""

from __future__ import annotations

import pytest
from agentsh_proxy.llm.admission import Admitted, admit
from agentsh_proxy.llm.asked import asked, renewed
from agentsh_proxy.llm.view import unfold
from loopback.client import raw
from loopback.proxy import snapshot

from agentsh_net.core.web.http_head import parse_request


@pytest.mark.parametrize(
    ("line", "held", "identity"),
    [
        (b"POST /anthropic/v1/messages", True, True),
        (b"POST /anthropic/v1/files", True, False),
        (b"GET /anthropic/v1/models", True, False),
    ],
)
def test_a_request_is_held_and_asks_for_plain_bytes_where_it_is_inspected(
    line: bytes, held: bool, identity: bool
) -> None:
    length = b"Content-Length: 2\r\n" if line.startswith(b"POST") else b""
    head = parse_request(
        line + b" HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: br\r\n" + length + b"X: 1\r\n\r\n"
    )
    view = unfold(snapshot(9))
    admitted = admit(head, view, {})
    assert isinstance(admitted, Admitted)
    what = asked(head, admitted, view, {})
    assert (what.held, b"identity" in what.opening, b"br" in what.opening) == (held, identity, not identity)
    assert what.opening.startswith(line.replace(b"/anthropic", b"") + b" HTTP/1.1\r\nHost: 127.0.0.1:9\r\n")
    assert what.opening.endswith(b"\r\nX: 1" if not identity else b"Accept-Encoding: identity")


@pytest.mark.parametrize(
    ("line", "kind", "held"),
    [
        (b"POST /anthropic/v1/files", b"multipart/form-data; boundary=x", False),
        (b"POST /openai/v1/audio", b"Audio/mpeg", False),
        (b"PUT /openai/v1/x", b"application/octet-stream", False),
        (b"POST /ollama/api/blobs/sha256:ab", b"application/json", False),
        (b"POST /gemini/upload/v1beta/files?upload_id=x", b"application/jsonl", False),
        (b"POST /ollama/api/embed", b"application/x-www-form-urlencoded", True),
        (b"POST /openai/v1/embeddings", b"text/plain; x=multipart/", True),
    ],
)
def test_what_may_be_json_is_held_and_files_are_not(line: bytes, kind: bytes, held: bool) -> None:
    head = parse_request(
        line + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Type: " + kind + b"\r\n\r\n"
    )
    view = unfold(snapshot(9))
    admitted = admit(head, view, {})
    assert isinstance(admitted, Admitted)
    assert asked(head, admitted, view, {}).held == held


def test_what_stands_no_more_is_still_of_its_clients_session():
    view = unfold(snapshot(1))
    head = parse_request(raw("/v1/messages", b"Host: localhost"))
    what = asked(head, admit(head, view, {}, "mine"), view, {})
    assert renewed(what, view, {"digest": "other"}).admitted.session_id == "mine"
