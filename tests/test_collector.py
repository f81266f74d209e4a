"""The collector waits as long as it is told to, and collects again whatever happened meanwhile."""

from __future__ import annotations

import gc

import pytest

from agentsh_net import collector


def test_it_waits_and_goes_on_after_a_failure_too() -> None:
    assert gc.isenabled()
    with collector.waiting():
        assert not gc.isenabled()
        with collector.waiting():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), collector.waiting():
        raise KeyError
    assert gc.isenabled()
