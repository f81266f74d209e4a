"""The environment of an agent that `exec` starts: the proxy's base URLs, what may not go through an HTTP proxy, who it is now.

Pure: variables in, variables out. Whoever points agents at something else of ours adds its variables here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

# Provider -> its variables, and where the proxy has it. A client appends what it calls: OpenAI's expect the version here.
_ROUTES: Mapping[str, tuple[tuple[str, ...], str]] = {
    "anthropic": (("ANTHROPIC_BASE_URL",), "/anthropic"),
    "openai": (("OPENAI_BASE_URL",), "/openai/v1"),
    "gemini": (("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"), "/gemini"),
    "google": (("GOOGLE_GEMINI_BASE_URL", "GEMINI_BASE_URL"), "/google"),
    "ollama": (("OLLAMA_HOST",), "/ollama"),
}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# Of whoever called sudo, and of a mailbox and a run-time directory that are not the agent's.
_OF_ANOTHER = ("SUDO_COMMAND", "SUDO_USER", "SUDO_UID", "SUDO_GID", "SUDO_HOME", "MAIL", "XDG_RUNTIME_DIR")


@dataclass(frozen=True, slots=True)
class Account:
    """A user, as passwd(5) has it."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str


def base_urls(base: str, providers: Iterable[str]) -> dict[str, str]:
    """Return the variables that point the official SDKs and the agents at the proxy, for the providers that it knows."""
    there = set(providers)
    return {
        variable: base + path
        for name, (variables, path) in _ROUTES.items()
        if name in there
        for variable in variables
    }


def gateway_url(base: str, token: str) -> dict[str, str]:
    """Return the variable that an MCP client's file names the gateway by, as `${AGENTSH_NET_MCP_URL}/<server-id>`; nothing while it is off."""
    return {"AGENTSH_NET_MCP_URL": f"{base}/s/{token}/mcp"} if base else {}


def agent_environment(
    inherited: Mapping[str, str], session: Mapping[str, str], account: Account | None
) -> dict[str, str]:
    """Return the agent's environment: what it inherits, the session's variables, and its own account's if that is another."""
    found = dict(inherited)
    if account is not None:
        found = {name: value for name, value in found.items() if name not in _OF_ANOTHER}
        found |= {
            "HOME": account.home,
            "USER": account.name,
            "LOGNAME": account.name,
            "SHELL": account.shell or "/bin/sh",
        }
    found |= session
    for name in ("NO_PROXY", "no_proxy"):
        found[name] = _with_loopback(found.get(name, ""))
    return found


def replaced(inherited: Mapping[str, str], session: Mapping[str, str]) -> list[str]:
    """Return the base URLs that were set to something else, sorted: the agent does not go there any more."""
    return sorted(
        name
        for name, value in session.items()
        if name.endswith(("_BASE_URL", "_HOST")) and inherited.get(name, value) != value
    )


def _with_loopback(value: str) -> str:
    listed = [entry.strip() for entry in value.split(",") if entry.strip()]
    return ",".join(listed if "*" in listed else [*listed, *(h for h in _LOOPBACK if h not in listed)])
