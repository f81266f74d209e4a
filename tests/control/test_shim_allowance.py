"""A user may ask a burst of questions at any pace, then so many a second; calls told of together count one by one."""

from __future__ import annotations

import pytest

from agentsh_net.control import shim_allowance
from agentsh_net.control.shim_allowance import Allowance


def test_tokens_come_back_with_time_up_to_the_burst() -> None:
    user = Allowance(0.0)
    user.tokens = 1.0
    assert user.delay(0.0) == 0
    assert user.delay(0.0) == pytest.approx(1 / shim_allowance.PER_SECOND)
    assert user.delay(1.0) == 0
    assert user.delay(1e9) == 0
    assert user.tokens == shim_allowance.BURST - 1


def test_many_at_once_are_charged_on_credit_and_paid_before_the_next() -> None:
    user = Allowance(0.0)
    user.tokens = 1.0
    assert user.delay(0.0, 100) == 0
    assert user.delay(0.0) == pytest.approx(100 / shim_allowance.PER_SECOND)
