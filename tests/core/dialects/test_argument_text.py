"""Arguments that come as text are what they say where all parsers agree, and else the text as it came."""

from __future__ import annotations

from typing import Any

import pytest

from agentsh_net.core.dialects.argument_text import parsed


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', ({"a": 1}, False)),
        ("[1]", ([1], False)),
        ('{"a":{"b":1,"b":2}}', ('{"a":{"b":1,"b":2}}', True)),
        ('{"a":', ('{"a":', False)),
        ("", ("", False)),
        ('{"a":"\ud800"}', ({"a": "\ufffd\ufffd\ufffd"}, False)),
    ],
)
def test_text_is_read_where_it_says_one_thing(text: str, value: Any) -> None:
    assert parsed(text) == value
