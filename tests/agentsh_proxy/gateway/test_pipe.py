"""Every pipe, and the one that tests speak for, takes and gives messages as the sessions expect it."""

from __future__ import annotations

import inspect

import pytest
from agentsh_proxy.gateway.pipe import Pipe
from agentsh_proxy.gateway.sse import SsePipe
from agentsh_proxy.gateway.stdio import StdioPipe
from gateway_pipes import FakePipe


@pytest.mark.parametrize("kind", [SsePipe, StdioPipe, FakePipe])
@pytest.mark.parametrize("method", ["open", "attach", "start", "send", "receive", "close"])
def test_a_pipe_has_what_sessions_use_of_it(kind: type, method: str) -> None:
    expected, found = getattr(Pipe, method), getattr(kind, method)
    assert list(inspect.signature(found).parameters) == list(inspect.signature(expected).parameters)
    assert inspect.iscoroutinefunction(found) == inspect.iscoroutinefunction(expected)
