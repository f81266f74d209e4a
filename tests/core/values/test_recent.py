"""What was used longest ago is forgotten first, however long it has been there."""

from __future__ import annotations

from collections import OrderedDict

from agentsh_net.core.values.recent import remember


def test_what_was_used_longest_ago_goes_first() -> None:
    recent: OrderedDict[str, int] = OrderedDict()
    for number, key in enumerate("abcad"):
        remember(recent, key, number, 3)
    assert dict(recent) == {"c": 2, "a": 3, "d": 4}
