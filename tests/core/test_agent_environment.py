"""An agent's variables lead it to the proxy, past no HTTP proxy, and are its own account's."""

from __future__ import annotations

from agentsh_net.core.agent_environment import Account, agent_environment, base_urls, gateway_url, replaced

BOB = Account("bob", 1000, 1000, "/home/bob", "/bin/bash")


def test_only_providers_that_the_proxy_knows_have_variables() -> None:
    assert base_urls("http://p", ["anthropic", "openai", "my-own"]) == {
        "ANTHROPIC_BASE_URL": "http://p/anthropic",
        "OPENAI_BASE_URL": "http://p/openai/v1",
    }
    assert base_urls("http://p", ["gemini"]).keys() == {"GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"}
    assert base_urls("http://p", ["ollama"]) == {"OLLAMA_HOST": "http://p/ollama"}


def test_loopback_is_added_to_what_goes_past_an_http_proxy() -> None:
    found = agent_environment({"NO_PROXY": "corp.test, ::1", "no_proxy": "*"}, {}, None)
    assert found == {"NO_PROXY": "corp.test,::1,localhost,127.0.0.1", "no_proxy": "*"}


def test_the_agent_is_at_home_and_knows_nothing_of_who_called_sudo() -> None:
    inherited = {
        "HOME": "/root",
        "USER": "root",
        "SUDO_UID": "1000",
        "XDG_RUNTIME_DIR": "/run/user/0",
        "PATH": "/bin",
    }
    found = agent_environment(inherited, {"ANTHROPIC_BASE_URL": "http://p"}, BOB)
    assert (found["HOME"], found["USER"], found["SHELL"]) == ("/home/bob", "bob", "/bin/bash")
    assert not found.keys() & {"SUDO_UID", "XDG_RUNTIME_DIR"}
    assert (found["PATH"], found["ANTHROPIC_BASE_URL"]) == ("/bin", "http://p")


def test_who_stays_who_it_is_keeps_its_variables() -> None:
    assert agent_environment({"HOME": "/x", "SUDO_UID": "0"}, {}, None)["HOME"] == "/x"


def test_a_base_url_that_was_another_is_told() -> None:
    session = {"OPENAI_BASE_URL": "http://p", "ANTHROPIC_BASE_URL": "http://q", "AGENTSH_NET_SESSION": "t"}
    assert replaced({"OPENAI_BASE_URL": "http://mine", "AGENTSH_NET_SESSION": "old"}, session) == [
        "OPENAI_BASE_URL"
    ]


def test_the_gateway_is_named_with_the_sessions_token_where_it_is_on() -> None:
    expected = {"AGENTSH_NET_MCP_URL": "http://127.0.0.1:8485/s/tok/mcp"}
    assert gateway_url("http://127.0.0.1:8485", "tok") == expected
    assert gateway_url("", "tok") == {}
