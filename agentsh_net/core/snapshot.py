"""Everything a verdict depends on, frozen: the one thing a reload, a registration or a pin swaps.

How it travels from the supervisor to a worker is here too; when it does is the shells' business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, Self

from agentsh_net.core.configuration import config as config_reader
from agentsh_net.core.configuration.settings import Config
from agentsh_net.core.dlp.guard import Guard
from agentsh_net.core.mcp.glance import reads
from agentsh_net.core.model import Candidate, PinState, Server, Tool, ToolCall, Transport, Verdict
from agentsh_net.core.registry import Registry
from agentsh_net.core.trust import identity
from agentsh_net.core.trust.identity import Aspect, Identity
from agentsh_net.core.trust.outline import Outline
from agentsh_net.core.trust.pins import Pin, Pins
from agentsh_net.core.verdicts import inner_verdicts, steps
from agentsh_net.core.verdicts.connectors import Reach
from agentsh_net.core.verdicts.inner_calls import inner_calls
from agentsh_net.core.verdicts.policy import Charge, Explanation, Policy

# What only the supervisor's side of a server needs, and what may hold secrets of local programs.
WITHHELD: Mapping[str, Any] = MappingProxyType({"command": "(withheld)", "args": [], "env": {}})


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One state of the policy. `mapping` is the resolved configuration that `config` was read from."""

    generation: int
    digest: str
    config: Config
    registry: Registry
    pins: Pins
    mapping: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    _policy: Policy = field(init=False, repr=False, compare=False)
    guard: Guard | None = field(init=False, repr=False, compare=False)  # DLP, where it is on

    def __post_init__(self) -> None:
        object.__setattr__(self, "_policy", Policy(self.config.sandbox.mcp, self.registry, self.pins))
        object.__setattr__(self, "guard", Guard.of(self.config.dlp))

    def judge(self, call: ToolCall, *, session_id: str, charge: Charge) -> Verdict:
        """Return the verdict on a tool call. `charge` is asked last, for each server the call may reach."""
        inner = inner_calls(call) if call.inner is None else call.inner
        if not inner:
            return self._policy.judge(call, session_id, charge)
        return inner_verdicts.judged(
            call,
            inner,
            explain=self._policy.explain,
            judge=lambda each: self._policy.judge(each, session_id, charge),
            meant=self._policy.meant,
        )

    def prepare(self) -> None:
        """Work out beforehand what every verdict needs, where calls will be judged."""
        self._policy.prepare()

    def explain(self, call: ToolCall) -> Explanation:
        """Return the steps of the verdict on a call; no rate is charged."""
        inner = inner_calls(call) if call.inner is None else call.inner
        if not inner:
            return self._policy.explain(call)
        return inner_verdicts.explained(call, inner, explain=self._policy.explain, meant=self._policy.meant)

    def explain_reading(self, call: ToolCall) -> Explanation:
        """Return the steps of the verdict on a request to read, whose method is the call's name."""
        return self._policy.explain_reading(call)

    def stands(self, call: ToolCall) -> bool:
        """Say whether the verdict on a call holds for every call of its name while this snapshot is in force."""
        return self._policy.stands(call)

    def meant(self, call: ToolCall) -> tuple[Candidate, ...]:
        """Return the registered tools that a call's name spells."""
        return self._policy.meant(call)

    def judge_offer(self, call: ToolCall) -> Verdict:
        """Return the verdict on the offer of a tool: blocked is what would be, whatever the arguments of the call."""
        return self._policy.judge_offer(call)

    def judge_server(self, server_id: str) -> Verdict:
        """Return the verdict of the server step alone."""
        return self._policy.judge_server(server_id)

    def reads(self, server_id: str, method: str = "") -> bool:
        """Say whether a rule names a server's requests to read of this method (empty: of any)."""
        return self._policy.readings.speak_of(server_id, method)

    def judge_reading(self, server_id: str, method: str, params: Any) -> Verdict:
        """Return the verdict on a request to read of a server that is not denied itself."""
        return self._policy.judge_reading(server_id, method, params)

    def judge_connector(self, server_id: str, url: str) -> Verdict:
        """Return the verdict on an MCP server that a request asks the provider to call by itself."""
        return self._policy.judge_connector(server_id, url)

    def connector_reach(self, server_id: str, url: str) -> Reach:
        """Return which tools a connector that may be called may reach."""
        return self._policy.connector_reach(server_id, url)

    def masked(self, value: Any) -> Any:
        """Return a call's input as DLP lets it be told."""
        return self.guard.masked(value) if self.guard is not None else value

    def evolve(self, *, registry: Registry | None = None, pins: Pins | None = None) -> Self:
        """Return the next generation, with another registry or other pins."""
        return replace(
            self,
            generation=self.generation + 1,
            registry=self.registry if registry is None else registry,
            pins=self.pins if pins is None else pins,
        )


def explain(snapshot: Snapshot, call: ToolCall) -> Explanation:
    """Return the steps of the verdict on a call, which `agentsh-net policy explain` prints, and what the gateway says besides."""
    if call.server_name and reads(call.name):
        return snapshot.explain_reading(call)
    told = snapshot.explain(call)
    gateway = snapshot.config.gateway
    beside = (steps.gateway_step(gateway, pair) for pair in told.verdict.candidates)
    return replace(told, steps=(*told.steps[:-1], *filter(None, beside), told.steps[-1]))


def encode(snapshot: Snapshot) -> dict[str, Any]:
    """Return what a worker needs, as JSON: no commands, arguments or environments, and no definitions, only their hashes."""
    return {
        "generation": snapshot.generation,
        "digest": snapshot.digest,
        "mapping": _without_secrets(snapshot.mapping),
        "servers": [_server_json(server) for server in snapshot.registry.servers],
        "tools": [
            [t.server_id, t.name, t.hash, t.max_severity, t.shadows, list(t.outline), t.mirrored]
            for t in snapshot.registry.tools.values()
        ],
        "pins": [
            [p.server_id, p.tool, p.hash, p.state.value, p.trusted_at] for p in snapshot.pins.entries.values()
        ],
        "identities": [
            [i.server_id, i.aspect.value, i.state.value, i.declared, identity.mark(i.aspect, i.pinned)]
            for i in snapshot.pins.identities.values()
            if i.aspect not in identity.LISTED
        ],
    }


def decode(value: Mapping[str, Any]) -> Snapshot:
    """Return the snapshot that `encode` wrote. Raises ConfigError where this side reads the configuration otherwise."""
    tools = {
        (sid, name): Tool(
            sid,
            name,
            tool_hash,
            max_severity=severity,
            shadows=shadows,
            outline=_outline(*outline),
            mirrored=tuple((tuple(path), token, kind) for path, token, kind in mirrored),
        )
        for sid, name, tool_hash, severity, shadows, outline, mirrored in value["tools"]
    }
    pins = (Pin(sid, tool, h, {}, PinState(state), at) for sid, tool, h, state, at in value["pins"])
    identities = (
        Identity(sid, Aspect(aspect), PinState(state), identity.marked(mark), declared=declared)
        for sid, aspect, state, declared, mark in value["identities"]
    )
    return Snapshot(
        generation=value["generation"],
        digest=value["digest"],
        config=config_reader.parse(value["mapping"]),
        registry=Registry(tuple(map(_server, value["servers"])), MappingProxyType(tools)),
        pins=Pins.of(pins, identities),
        mapping=value["mapping"],
    )


def _outline(description: str, heads: list[str], texts: list[str]) -> Outline:
    return Outline(description, tuple(heads), tuple(texts))


def _server_json(server: Server) -> dict[str, Any]:
    shown = asdict(replace(server, env=dict(server.env), headers=dict(server.headers)))
    return {k: v for k, v in shown.items() if k not in WITHHELD}


def _server(value: Mapping[str, Any]) -> Server:
    known = {f.name for f in fields(Server)}
    given = {k: v for k, v in value.items() if k in known}
    return Server(**given | {"transport": Transport(value["transport"])})


def _without_secrets(mapping: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration without what WITHHELD names of each declared server."""
    sandbox = mapping.get("sandbox")
    mcp = sandbox.get("mcp") if isinstance(sandbox, Mapping) else None
    if not isinstance(sandbox, Mapping) or not isinstance(mcp, Mapping) or not mcp.get("servers"):
        return dict(mapping)
    servers = [s | {k: v for k, v in WITHHELD.items() if k in s} for s in map(dict, mcp["servers"])]
    return {**mapping, "sandbox": {**sandbox, "mcp": {**mcp, "servers": servers}}}
