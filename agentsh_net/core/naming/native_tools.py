"""The tools that agents bring themselves: `native_tools` of the policy, patterns and named presets.

Left out of the presets on purpose: tools that run programs which call MCP tools under no name (Codex `exec` and
`js_repl`) and wrappers that carry the MCP tool in their arguments (`use_mcp_tool`); an operator may list them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType

from agentsh_net.core.errors import ConfigError, Problem
from agentsh_net.core.naming import globs
from agentsh_net.core.naming.folding import fold

PRESET = "preset:"

PRESETS = MappingProxyType(
    {
        "claude-code": """
            Agent AskUserQuestion Bash BashOutput Config CronCreate CronDelete CronList Edit EnterPlanMode EnterWorktree
            ExitPlanMode ExitWorktree Glob Grep KillBash KillShell ListMcpResourcesTool LS LSP Monitor MultiEdit
            NotebookEdit NotebookRead PowerShell PushNotification Read ReadMcpResourceTool RemoteTrigger
            ScheduleWakeup SendMessage SendUserMessage Skill SlashCommand Sleep StructuredOutput Task TaskCreate
            TaskGet TaskList TaskOutput TaskStop TaskUpdate TeamCreate TeamDelete TodoRead TodoWrite ToolSearch
            WebFetch WebSearch Write
        """,
        "codex": """
            apply_patch assign_task close_agent container.exec create_goal exec_command followup_task get_goal
            get_context_remaining grep_files image_generation interrupt_agent list_agents list_dir
            list_mcp_resource_templates list_mcp_resources local_shell new_context read_file read_mcp_resource
            report_agent_job_result request_permissions request_plugin_install request_user_input resume_agent
            send_input send_message shell shell_command spawn_agent spawn_agents_on_csv test_sync_tool tool_search
            tool_suggest update_goal update_plan view_image wait wait_agent web_search write_stdin
        """,
        "gemini-cli": """
            activate_skill ask_user cli_help codebase_investigator complete_task delegate_to_agent enter_plan_mode
            exit_plan_mode generalist get_internal_docs glob google_web_search grep_search invoke_agent list_directory
            list_mcp_resources read_file read_many_files read_mcp_resource replace run_shell_command save_memory
            search_file_content tracker_add_dependency tracker_create_task tracker_get_task tracker_list_tasks
            tracker_update_task tracker_visualize update_topic web_fetch write_file write_todos
        """,
        "opencode": """
            apply_patch bash batch codesearch edit glob grep invalid list lsp multiedit patch plan_enter plan_exit
            question read skill StructuredOutput task todoread todowrite webfetch websearch write
        """,
        "copilot-cli": """
            apply_patch ask_user bash create edit exit_plan_mode fetch_copilot_cli_documentation glob grep list_agents
            list_bash lsp read_agent read_bash report_intent rg show_file skill sql stop_bash store_memory
            str_replace_editor task update_todo view web_fetch web_search write_bash
        """,
        "cline": """
            act_mode_respond apply_patch ask_followup_question attempt_completion browser_action condense
            execute_command focus_chain generate_explanation list_code_definition_names list_files
            load_mcp_documentation new_rule new_task plan_mode_respond read_file replace_in_file report_bug
            search_files summarize_task use_skill use_subagents web_fetch web_search write_to_file
        """,
    }
)


@dataclass(frozen=True, slots=True)
class Native:
    """The entry that lists a name. `exact`: by its full name, not by a pattern."""

    entry: str
    path: str
    exact: bool


class NativeTools:
    """The operator's list, ready to ask. Raises ConfigError for a bad pattern or an unknown preset."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._exact: dict[str, Native] = {}
        self._patterns: list[tuple[globs.Glob, Native]] = []
        for index, entry in enumerate(entries):
            path = f"sandbox.mcp.native_tools[{index}]"
            problem = check(entry)
            if problem:
                raise ConfigError((Problem(path, problem, "a name, a pattern, or `preset:<agent>`"),))
            preset = _preset(entry)
            if preset is not None:
                for name in PRESETS[preset].split():
                    self._exact.setdefault(fold(name), Native(entry, path, exact=True))
                continue
            glob = globs.parse(entry, path)
            if glob.literal is None:
                self._patterns.append((glob, Native(entry, path, exact=False)))
            else:
                self._exact.setdefault(glob.literal, Native(entry, path, exact=True))

    def find(self, name: str) -> Native | None:
        """Return the entry that lists a folded name, an exact one first."""
        exact = self._exact.get(name)
        if exact is not None or not self._patterns:
            return exact
        return next((native for glob, native in self._patterns if glob.matches(name)), None)


def check(entry: str) -> str | None:
    """Say what is wrong with an entry of `native_tools`, or None."""
    preset = _preset(entry)
    if preset is None:
        return globs.check(entry)
    if preset in PRESETS:
        return None
    return f"the unknown preset {preset!r}; known: {', '.join(sorted(PRESETS))}"


def _preset(entry: str) -> str | None:
    folded = fold(entry)
    return folded.removeprefix(PRESET).strip() if folded.startswith(PRESET) else None
