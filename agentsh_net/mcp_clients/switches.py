"""Which servers a client has switched off elsewhere than in their own entry: lists of names in its settings, by project.

A list counts only where its client heeds it for every use of a declaration. What one project switches off of the user's servers
is used in all the others, so it is not off. Reading files safely is `user_file`'s business, entries are `catalog`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from agentsh_net.mcp_clients import managed
from agentsh_net.mcp_clients.managed import FREE, Ruling
from agentsh_net.mcp_clients.user_file import Owner, UnusableError

Keys = tuple[str, ...]

_PROJECT_LIST: Final = "disabledMcpjsonServers"  # of a project's .mcp.json, in any settings file
_ANY_LIST: Final = "disabledMcpServers"  # of whatever a project has, in ~/.claude.json


class Switches:
    """What the settings of a user's clients switch off. `unread` are files that could not be read: they switch off nothing."""

    def __init__(self, bases: Mapping[str, Path], owner: Owner) -> None:
        self.unread: list[tuple[Path, str]] = []
        self._bases = bases
        self._owner = owner
        self._read: dict[Path, Any] = {}

    def ruling(self, client: str, source: Path, keys: Keys, declared: Mapping[str, Any]) -> Ruling:
        """Return what keeps a client from the server that is declared in `source` at `keys`, or binds it to its declaration."""
        etc, name = self._bases[""] / "etc", keys[-1]
        match client:
            case "claude-code":
                settings = _claude_settings(self._bases["~"], self._bases["."])
                ruling = managed.in_claude_code(self._content, etc, settings, source, name, declared)
                off = self._off_in_claude_code(source, keys)
                return Ruling(off) if off is not None and ruling.off_in is None else ruling
            case "codex":
                return managed.in_codex(self._content, etc, name, declared)
            case "vscode":
                return managed.in_vscode(
                    self._content, etc, self._bases["$config"] / "Code/User/settings.json"
                )
            case "gemini":
                return Ruling(self._off_in_gemini(source, name))
            case _:
                return FREE

    def _off_in_claude_code(self, source: Path, keys: Keys) -> Path | None:
        home, project, name = self._bases["~"], self._bases["."], keys[-1]
        own = home / ".claude.json"
        if source == project / ".mcp.json":
            lists = [
                *((file, _PROJECT_LIST, ()) for file in _claude_settings(home, project)),
                (own, _PROJECT_LIST, ("projects", str(project))),
                (own, _ANY_LIST, ("projects", str(project))),
            ]
        elif keys[0] == "projects":
            lists = [(own, _ANY_LIST, keys[:2])]
        else:
            lists = []  # the user's servers: every project decides for itself
        found = (file for file, key, at in lists if name in _names(self._at(file, (*at, key))))
        return next(found, None)

    def _off_in_gemini(self, source: Path, name: str) -> Path | None:
        """Read the system's lists first, the project's before the user's; what the user excludes is off in every project."""
        system = self._bases[""] / "etc/gemini-cli/settings.json"
        user = self._bases["~"] / ".gemini/settings.json"
        switch = self._bases["~"] / ".gemini/mcp-server-enablement.json"
        files = list(dict.fromkeys((system, source, user)))
        for file in files:
            excluded = (("mcp", "excluded"), ("excludeMCPServers",))
            if any(name in _names(self._at(file, at)) for at in excluded):
                return file
        for file in files:
            allowed = [self._at(file, at) for at in (("mcp", "allowed"), ("allowMCPServers",))]
            stated = [names for names in allowed if isinstance(names, list) and names]
            if stated:
                if not any(name in _names(names) for names in stated):
                    return file
                break
        state = self._at(switch, ())
        for key, entry in state.items() if isinstance(state, Mapping) else ():
            if key.strip().lower() == name.strip().lower() and _is_off(entry):
                return switch
        return None

    def _at(self, file: Path, keys: Iterable[str]) -> Any:
        value = self._content(file)
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def _content(self, file: Path) -> Any:
        if file not in self._read:
            try:
                self._read[file] = self._owner.content(file)
            except UnusableError as error:
                self._read[file] = None
                self.unread.append((file, str(error)))
        return self._read[file]


def _claude_settings(home: Path, project: Path) -> list[Path]:
    places = ((home, "settings.json"), (project, "settings.json"), (project, "settings.local.json"))
    return list(dict.fromkeys(base / ".claude" / name for base, name in places))


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str)] if isinstance(value, list) else []


def _is_off(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("enabled") is False
