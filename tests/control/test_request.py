"""An argument is text, or who asked is told which one is not."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.control.peer import Peer
from agentsh_net.control.request import Request
from agentsh_net.core.errors import ProtocolError


def request(**args: Any) -> Request:
    return Request(args, Peer(1, 1000, 1000))


def test_text_is_returned_and_what_is_missing_has_its_default() -> None:
    assert request(tool="get").text("tool") == "get"
    assert request(tool="").text("tool", "x") == ""
    assert request().text("tool", "x") == request(tool=None).text("tool", "x") == "x"


@pytest.mark.parametrize("args", [{}, {"tool": None}, {"tool": 7}, {"tool": ["get"]}])
def test_what_is_no_text_is_refused_by_its_name(args: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="tool is text"):
        request(**args).text("tool")
    if args.get("tool") is not None:
        with pytest.raises(ProtocolError, match="tool is text"):
            request(**args).text("tool", "default")
