"""What came of a scenario: whether the attack worked without enforcement, whether it did with it, and the event that says who stopped it.

Pure: what arrived where, what the agent reported and the daemon's events come in; a row of the result comes out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from agentsh_net.demo import scenarios
from agentsh_net.demo.scenarios import Scenario

Row = Mapping[str, Any]

_LAYERS: Final = {"ebpf": "eBPF", "nftables": "nftables", "sweep": "sweep"}
_FOUND: Final = 3  # patterns that are named


@dataclass(frozen=True, slots=True)
class Run:
    """One run of one scenario. `worked`: the attack; `honest`: how many honest calls succeeded; `ended`: the agent came to its end."""

    worked: bool
    honest: int
    ended: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """A row of the result. `honest`: the honest calls that succeeded with enforcement. `as_expected` is what the exit code is about."""

    number: int
    name: str
    title: str
    tried: str
    without: str
    with_: str
    layer: str
    event_type: str
    event_id: str
    reason: str
    honest: int
    as_expected: bool

    def to_json(self) -> dict[str, Any]:
        """Return it as --json prints it."""
        row = asdict(self)
        return {key.rstrip("_"): value for key, value in row.items()}


def stolen(scenario: Scenario, arrived: Iterable[Row], secret: str) -> bool:
    """Say whether the secret came to where the scenario wants it."""
    return any(
        (row["server"], row["tool"]) == scenario.thief and secret in str(row["arguments"]) for row in arrived
    )


def decisive(scenario: Scenario, events: Iterable[Row]) -> Row | None:
    """Return the event that blocked the attack, by the very rule and layer that should have; None where there is none."""
    for event in events:
        if (
            event.get("type") == scenario.stop.type
            and event.get("action") == "block"
            and str(event.get("rule")).startswith(scenario.stop.rule)
            and layer_of(event) == scenario.stop.layer
            and scenario.stop.about in _about(event)
        ):
            return event
    return None


def layer_of(event: Row) -> str:
    """Return the layer that an event comes from, by its own fields."""
    via = event.get("via") or _LAYERS.get(str(event.get("layer")))
    return str(via or scenarios.PROXY)


def outcome(scenario: Scenario, without: Run, with_: Run, events: Sequence[Row]) -> Outcome:
    """Return what came of a scenario."""
    event = decisive(scenario, events)
    honest = sum(turn.honest for scene in scenario.scenes for turn in scene.turns)
    served = without.honest == with_.honest == honest
    stopped = with_.ended and not with_.worked and event is not None
    return Outcome(
        scenario.number,
        scenario.name,
        scenario.title,
        scenario.tried,
        scenario.worked if without.worked else "it did not work",
        "stopped" if stopped else _instead(scenario, with_),
        layer_of(event) if event else "",
        str(event["type"]) if event else "",
        str(event["id"]) if event else "",
        _reason(event) if event else "",
        with_.honest,
        as_expected=without.worked and stopped and served,
    )


def _instead(scenario: Scenario, run: Run) -> str:
    if run.worked:
        return scenario.worked
    return "no such event" if run.ended else "the agent failed"


def _reason(event: Row) -> str:
    patterns = sorted({str(d.get("pattern")) for d in event.get("detections") or ()})
    found = f" [{', '.join(patterns[:_FOUND])}]" if patterns else ""
    return f"{event.get('reason')}{found}"


def _about(event: Row) -> set[str]:
    """Return the servers, or the provider, that an event is about."""
    names = {str(event.get("server_id")), str(event.get("provider"))}
    for candidate in event.get("candidates") or ():
        names.add(str(candidate["server_id"]) if isinstance(candidate, Mapping) else str(candidate))
    return names
