"""Every dialect that a configuration can name is here, and answers for the paths of its own wire format alone."""

from __future__ import annotations

import pytest

from agentsh_net.core.dialects.catalog import BY_NAME, WIRES


def test_the_names_are_those_of_the_configuration() -> None:
    assert set(BY_NAME) == {"anthropic", "openai", "gemini", "ollama", "bedrock"}


@pytest.mark.parametrize("name", sorted(BY_NAME))
def test_a_dialect_makes_errors_a_client_of_it_can_read(name: str) -> None:
    dialect = BY_NAME[name]
    assert b"upstream failed" in dialect.error(502, "upstream failed")
    frame = dialect.error_frame("upstream failed")
    assert b"upstream failed" in frame


@pytest.mark.parametrize(
    ("path", "owner"),
    [("/v1/messages", "anthropic"), ("/v1/chat/completions", "openai"), ("/v1/models", None)],
)
def test_no_two_dialects_claim_a_path(path: str, owner: str | None) -> None:
    assert [name for name, dialect in BY_NAME.items() if dialect.inspects("POST", path)] == (
        [owner] if owner else []
    )


def test_a_provider_speaks_its_own_wire_formats_first_shape_first() -> None:
    assert set(WIRES) == set(BY_NAME)
    assert all(wires[0] is BY_NAME[name] for name, wires in WIRES.items())


def test_no_path_is_claimed_by_two_wire_formats() -> None:
    for method, path in (
        ("POST", "/v1/messages"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/responses"),
        ("POST", "/v1beta/models/m:generateContent"),
        ("POST", "/v1beta/models/m:streamGenerateContent"),
        ("POST", "/v1/projects/p/locations/l/publishers/anthropic/models/m:streamRawPredict"),
        ("POST", "/v1beta/cachedContents"),
        ("POST", "/api/chat"),
        ("POST", "/model/m/converse"),
        ("POST", "/model/m/converse-stream"),
        ("POST", "/model/m/invoke"),
        ("POST", "/model/m/invoke-with-response-stream"),
    ):
        assert sum(w.inspects(method, path) for wires in WIRES.values() for w in wires) == 1
