"""A view says of a snapshot what the hot path needs, and nothing that the snapshot does not."""

from __future__ import annotations

import pytest
from agentsh_proxy.llm.view import Origin, unfold
from loopback.proxy import snapshot


@pytest.mark.parametrize(
    ("base", "origin", "host", "path"),
    [
        ("https://api.example.com", Origin("api.example.com", 443, tls=True), b"api.example.com", b""),
        ("http://[::1]:8080/x", Origin("::1", 8080, tls=False), b"[::1]:8080", b"/x"),
        ("http://localhost/a/v1", Origin("localhost", 80, tls=False), b"localhost", b"/a/v1"),
    ],
)
def test_a_base_url_is_taken_apart(base, origin, host, path):
    provider = unfold(snapshot(1, proxy={"providers": {"anthropic": {"base_url": base}}})).providers[
        "anthropic"
    ]
    assert (provider.origin, provider.host_field, provider.base_path) == (origin, host, path)


def test_a_providers_own_dialect_comes_first_and_the_others_follow():
    view = unfold(snapshot(1))
    assert [d.name for d in view.providers["openai"].dialects] == [
        "openai", "openai_responses", "batch", "anthropic", "batch", "batch", "gemini", "gemini", "interactions", "batch", "ollama", *["bedrock"] * 4,
    ]  # fmt: skip
    assert view.providers["corp"].dialect.name == "openai"


def test_limits_and_servers_are_the_configurations():
    view = unfold(snapshot(1, fail_closed=True, proxy={"max_frame": "64KiB"}))
    assert (view.limits.max_frame, view.fail_closed) == (64 << 10, True)
    assert set(view.servers) == {"weather", "files"}
