"""An argument is text, or who asked is told which one is not."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.control.asked import Asked
from agentsh_net.control.peer import Peer
from agentsh_net.core.errors import ProtocolError


def asked(**args: Any) -> Asked:
    return Asked(args, Peer(1, 1000, 1000))


def test_text_is_returned_and_what_is_missing_has_its_default() -> None:
    assert asked(tool="get").text("tool") == "get"
    assert asked(tool="").text("tool", "x") == ""
    assert asked().text("tool", "x") == asked(tool=None).text("tool", "x") == "x"


@pytest.mark.parametrize("args", [{}, {"tool": None}, {"tool": 7}, {"tool": ["get"]}])
def test_what_is_no_text_is_refused_by_its_name(args: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError, match="tool is text"):
        asked(**args).text("tool")
    if args.get("tool") is not None:
        with pytest.raises(ProtocolError, match="tool is text"):
            asked(**args).text("tool", "default")
