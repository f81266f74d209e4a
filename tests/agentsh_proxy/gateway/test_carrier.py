"""Both carriers serve, tick and close as the router expects it."""

from __future__ import annotations

import inspect

import pytest
from agentsh_proxy.gateway.bridge import Bridge
from agentsh_proxy.gateway.carrier import Carrier
from agentsh_proxy.gateway.forward import Forward


@pytest.mark.parametrize("kind", [Bridge, Forward])
@pytest.mark.parametrize("method", ["serve", "tick", "close"])
def test_a_carrier_has_what_the_router_uses_of_it(kind: type, method: str) -> None:
    expected, found = getattr(Carrier, method), getattr(kind, method)
    assert list(inspect.signature(found).parameters) == list(inspect.signature(expected).parameters)
