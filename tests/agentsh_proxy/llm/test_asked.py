"""The opening of the request to the upstream is written once a head, and says at which paths a body has to be whole."""

from __future__ import annotations

import pytest
from agentsh_proxy.llm.admission import Admitted, admit
from agentsh_proxy.llm.asked import asked
from agentsh_proxy.llm.view import unfold
from loopback.proxy import snapshot

from agentsh_net.core.web.http_head import parse_request


@pytest.mark.parametrize(
    ("line", "held", "identity"),
    [
        (b"POST /anthropic/v1/messages", True, True),
        (b"POST /anthropic/v1/files", False, False),
        (b"GET /anthropic/v1/models", True, False),
    ],
)
def test_an_inspected_request_is_held_and_asks_for_plain_bytes(
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
