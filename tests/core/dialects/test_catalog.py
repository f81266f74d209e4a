"""Every dialect that a configuration can name is here, and answers for the paths of its own wire format alone."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.catalog import BY_NAME


def test_the_names_are_those_of_the_configuration() -> None:
    assert set(BY_NAME) == {"anthropic", "openai"}


@pytest.mark.parametrize("name", ["anthropic", "openai"])
def test_a_dialect_makes_errors_a_client_of_it_can_read(name: str) -> None:
    dialect = BY_NAME[name]
    assert b'"error"' in dialect.error(502, "upstream failed")
    frame = dialect.error_frame("upstream failed")
    assert frame.endswith(b"\n\n")
    assert b"upstream failed" in frame


@pytest.mark.parametrize(
    ("path", "owner"),
    [("/v1/messages", "anthropic"), ("/v1/chat/completions", "openai"), ("/v1/models", None)],
)
def test_no_two_dialects_claim_a_path(path: str, owner: str | None) -> None:
    assert [name for name, dialect in BY_NAME.items() if dialect.inspects("POST", path)] == (
        [owner] if owner else []
    )
