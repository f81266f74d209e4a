"""The agents' own tools are listed by name, by pattern or by preset, and an entry that cannot be meant is an error."""

from __future__ import annotations

import pytest

from agentsh_net.core.errors import ConfigError
from agentsh_net.core.naming.folding import fold
from agentsh_net.core.naming.native_tools import PRESETS, NativeTools, check


@pytest.mark.parametrize(
    ("preset", "tool"),
    [
        ("claude-code", "Bash"),
        ("claude-code", "TodoWrite"),
        ("codex", "apply_patch"),
        ("codex", "exec_command"),
        ("gemini-cli", "run_shell_command"),
        ("opencode", "webfetch"),
        ("copilot-cli", "str_replace_editor"),
        ("cline", "execute_command"),
    ],
)
def test_presets_know_their_agents_tools(preset, tool):
    native = NativeTools([f"preset:{preset}"]).find(fold(tool))
    assert native.exact
    assert native.path == "sandbox.mcp.native_tools[0]"


@pytest.mark.parametrize("tool", ["use_mcp_tool", "js_repl", "exec", "call_mcp_tool"])
def test_no_preset_lists_a_way_around_the_names(tool):
    assert all(NativeTools([f"preset:{p}"]).find(tool) is None for p in PRESETS)


def test_names_are_exact_and_patterns_are_not():
    native = NativeTools(["Read", "browser_*"])
    assert native.find("read").exact
    assert not native.find("browser_click").exact
    assert native.find("browser_click").path == "sandbox.mcp.native_tools[1]"
    assert native.find("write") is None


def test_an_exact_entry_is_found_before_a_pattern():
    assert NativeTools(["*", "Read"]).find("read").entry == "Read"


@pytest.mark.parametrize("entry", ["preset:unknown", "preset:", "[", "", "a\\b"])
def test_a_bad_entry_is_an_error(entry):
    assert check(entry)
    with pytest.raises(ConfigError):
        NativeTools([entry])


def test_good_entries_have_no_problem():
    assert [check(e) for e in ("Bash", "browser_*", "preset:codex", " Preset:Codex ")] == [None] * 4
