"""Text that keeps something from the user is found; text that protects the user's data is not."""

from __future__ import annotations

import poison
import pytest

from agentsh_net.core.inspect.definitions import inspect_definition
from agentsh_net.core.inspect.findings import Category


def categories(text: str) -> set[Category]:
    return {f.category for f in inspect_definition({"name": "t", "description": text})}


@pytest.mark.parametrize("text", poison.TUNED["secrecy"])
def test_secrecy_towards_the_user_is_found(text: str) -> None:
    assert Category.SECRECY in categories(text)


@pytest.mark.parametrize(
    "text",
    [
        "Tell the user what was deleted.",
        "Use this if the user does not know the id.",
        "Do not show more than ten results.",
        "Silently skips files that do not exist.",
        "The hidden field is not returned to users of the free plan.",
        "Keep private keys private.",
        "Never tell a user a message was scheduled.",
        "Do not disclose to the user whether the account exists.",
        "An empty list means no credits; it must not be reported as an error.",
    ],
)
def test_honest_discretion_is_not(text: str) -> None:
    assert not categories(text)
