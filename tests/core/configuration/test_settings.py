"""The defaults are those that the documentation names, and a credential never prints."""

from __future__ import annotations

from agentsh_net.core.configuration.settings import Config, SecurityScheme


def test_the_defaults_are_the_documented_ones() -> None:
    config = Config()
    assert (config.proxy.listen, config.proxy.port, config.proxy.workers) == ("127.0.0.1", 8484, 1)
    assert config.network.mode == "tag"
    assert config.network.layers == ("ebpf", "nftables")
    assert (config.network.on_exit, config.network.on_crash) == ("remove", "keep")
    assert config.store.path == "/var/lib/agentsh-net/events.db"
    assert config.sandbox.mcp.version_pinning.on_change == "block"


def test_no_connection_is_marked_unless_a_policy_says_so() -> None:
    assert Config().network.mark == 0


def test_a_credential_never_prints() -> None:
    assert "hush" not in repr(SecurityScheme("id", "http", "hush"))
