"""What `str.splitlines` takes for the end of a line is found wherever it stands, and means the same once it is escaped."""

from __future__ import annotations

import json

import pytest

from agentsh_net.core.framing.line_ends import escaped, has_others

OTHERS = [c for c in map(chr, range(0x10000)) if c not in "\r\n" and len(f"a{c}b".splitlines()) == 2]


def test_python_knows_no_others() -> None:
    assert list("\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029") == OTHERS


@pytest.mark.parametrize("other", OTHERS)
def test_each_is_found_and_escaped_to_what_it_means(other: str) -> None:
    text = f'{{"ü": "a{other}b"}}'.encode()
    assert has_others(text)
    assert not has_others(escaped(text))
    assert json.loads(escaped(text)) == {"ü": f"a{other}b"}


@pytest.mark.parametrize("text", ["plain", "é ü \u2027 \u202a \x84", ""])
def test_other_text_stays_as_it_is(text: str) -> None:
    assert not has_others(text.encode())
    assert escaped(text.encode()) == text.encode()
