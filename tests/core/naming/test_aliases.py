"""Each client's spelling of a pair is what that client was seen to write."""

from __future__ import annotations

import pytest

from agentsh_net.core.naming import aliases
from agentsh_net.core.naming.aliases import cut_forms


def spelled(server: str, tool: str) -> set[str]:
    joined = {h + t for s in aliases.STYLES for h in aliases.heads(server, s) for t in aliases.tails(tool, s)}
    return joined | aliases.all_tails(tool) | cut_forms(server, tool)


LONG = "summarize_every_open_pull_request_of_the_organisation_and_its_forks"


@pytest.mark.parametrize(
    ("server", "tool", "name"),
    [
        ("git hub", "get.me", "mcp__git_hub__get_me"),  # Claude Code
        ("claude.ai Linear  App", "list", "mcp__claude_ai_linear_app__list"),  # a connector of claude.ai
        ("git-hub", "get-me", "mcp__git_hub__get_me"),  # Codex, flat
        ("git-hub", "get.me:x", "mcp_git-hub_get.me:x"),  # Gemini CLI
        ("git.hub", "get.me", "git_hub_get_me"),  # OpenCode
        ("git.hub", "get_me", "git-hub-get_me"),  # Copilot CLI
        ("münchen", "get", "xn--mnchen-3ya-get"),  # Copilot CLI, punycode
        ("hub", "get.me", "hub__get.me"),  # Cline, gateways
        # VS Code: 18 characters of prefix.
        ("GitHub Enterprise Server", "get.me", "mcp_github_enterp_get_me"),
        ("hub", "_get_", "mcp_hub__get"),  # openai-agents
        ("git hub", "get me", "git hub_get me"),  # LangChain
        ("hub", "get", "hub.get"),
        ("hub", "get", "hub-get"),
        ("hub", "get", "get"),
        ("a𝒜b", "get", "mcp__a__b__get"),  # JavaScript replaces both halves of a surrogate pair
        ("a𝒜b", "get", "mcp__a_b__get"),  # Rust and Python replace the character
    ],
)
def test_what_a_client_writes_is_among_the_spellings(server, tool, name):
    assert name in spelled(server, tool)


@pytest.mark.parametrize(
    "name",
    [
        "mcp_github_summarize_every_ope...est_of_the_organisation_and_its_forks"[:30]
        + "..."
        + "_the_organisation_and_its_forks"[-30:],  # Gemini CLI
        "github-summarize_every_open_pull_request_of_the_organisation_and_its_forks"[:64],  # Copilot CLI
        "mcp_github_summarize_every_open_pull_request_of_the_organisation_and_its_forks"[:64],  # VS Code
    ],
)
def test_a_long_name_is_cut(name):
    assert len(name) in (63, 64)
    assert name in cut_forms("github", LONG)


def test_a_long_name_ends_in_a_hash():
    forms = cut_forms("github", LONG)
    assert {len(f) for f in forms} <= {63, 64}
    assert any(f.startswith("github__summarize_every_open_pull_request_of_the_organi_") for f in forms)
    assert any(f.startswith("mcp__github__summarize_e") and len(f) == 64 for f in forms)


def test_most_names_are_never_cut():
    assert cut_forms("github", "get_me") == frozenset()
    assert cut_forms("git-hub", "get-me") == frozenset()


def test_cline_hashes_a_name_it_had_to_clean():
    # printf 'git hub__get' | sha1sum
    assert "git_hub__get_86f818ae" in cut_forms("git hub", "get")


def test_a_server_is_known_by_its_beginning_and_a_tool_by_its_end_in_punycode_too():
    assert "xn--mnchen-3ya-" in aliases.heads("münchen", aliases.COPILOT)
    assert aliases.heads("munich", aliases.COPILOT) == {"munich-"}
    assert "xn--mnchen-3ya" in aliases.tails("münchen", aliases.COPILOT)
    assert "xn--mnchen-3ya" not in aliases.tails("münchen", aliases.PLAIN)
