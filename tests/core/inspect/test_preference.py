"""Text that pushes other tools aside is found; advice on when to use which is not."""

from __future__ import annotations

import poison
import pytest

from agentsh_net.core.inspect.definitions import inspect_definition
from agentsh_net.core.inspect.findings import Category


def categories(text: str) -> set[Category]:
    return {f.category for f in inspect_definition({"name": "t", "description": text})}


@pytest.mark.parametrize("text", poison.TUNED["preference"])
def test_a_tool_that_pushes_others_aside_is_found(text: str) -> None:
    assert Category.PREFERENCE in categories(text)


@pytest.mark.parametrize(
    "text",
    [
        "DEPRECATED: use read_text_file instead.",
        "Prefer this tool over polling.",
        "Use this tool when you know the path, and search_files otherwise.",
        "Replaces all occurrences of a string; overrides the previous value.",
        "Always use absolute paths with this tool.",
    ],
)
def test_advice_is_no_preference(text: str) -> None:
    assert not categories(text)
