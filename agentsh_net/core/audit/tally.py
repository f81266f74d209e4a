"""Events counted as they pass: for metrics, which must not ask the store.

Only words of a known kind become keys, so that nobody who writes events can make the tally grow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agentsh_net.core.audit.exposition import word

MAX_KEYS: Final = 64  # of one counter; layers, kinds and reasons are a dozen or two


class Tally:
    """Totals since the daemon started, by what `to_json` says of an event."""

    __slots__ = ("calls", "connections", "lost", "redactions", "reloads", "undeclared")

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()  # by layer and action
        self.connections: Counter[tuple[str, str]] = Counter()  # by layer and action
        self.undeclared: Counter[tuple[str, str]] = Counter()  # connections of sessions, by layer and action
        self.lost: Counter[str] = Counter()  # by layer
        self.redactions: Counter[str] = Counter()  # by kind
        self.reloads: Counter[str] = Counter()  # applied | rejected

    def note_calls(self, events: Iterable[Mapping[str, Any]]) -> None:
        """Count mcp_tool_called (as JSON), as `note` does."""
        alike = Counter((event["via"], event["action"], event["would"]) for event in events)
        for (via, action, would), count in alike.items():
            _add(self.calls, (word(via), _action({"action": action, "would": would})), count)

    def note(self, event: Mapping[str, Any]) -> None:
        """Count an event (as JSON)."""
        match event.get("type"):
            case "mcp_tool_call_intercepted":
                self.calls["llm", _action(event)] += 1
            case "mcp_tool_called":
                _add(self.calls, (word(event.get("via")), _action(event)))
            case "mcp_network_connection":
                _add(self.connections, (word(event.get("layer")), _action(event)))
            case "undeclared_connection":
                _add(self.undeclared, (word(event.get("layer")), _action(event)))
            case "events_lost":
                _add(self.lost, word(event.get("layer")), event.get("lost", 0))
            case "llm_request_redacted":
                for kind, count in event.get("counts", {}).items():
                    _add(self.redactions, word(kind), count)
            case "policy_reloaded":
                self.reloads["applied"] += 1
            case "policy_rejected":
                self.reloads["rejected"] += 1


def _action(event: Mapping[str, Any]) -> str:
    """Return allow, block, or would_block where audit mode let it pass."""
    if event.get("action") == "block":
        return "block"
    return "would_block" if event.get("would") == "block" else "allow"


def _add(counter: Counter[Any], key: Any, count: int = 1) -> None:
    if key not in counter and len(counter) >= MAX_KEYS:
        key = "other" if isinstance(key, str) else ("other", "other")
    counter[key] += count
