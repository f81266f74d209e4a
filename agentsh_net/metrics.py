"""What the daemon knows of itself as numbers: families for Prometheus, and the same as one object for the dashboard.

No names of tools, sessions or people, and nothing that who sends traffic can make grow. Serving it is `metrics_page`'s business.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from agentsh_net import __version__
from agentsh_net.core.audit.exposition import Family, family, histogram, render, summary, word
from agentsh_net.core.audit.tally import Tally
from agentsh_net.core.links.link import LATENCY_BOUNDS
from agentsh_net.daemon_state import DaemonState

Samples = list[tuple[dict[str, str], float]]  # labels, value

_PROXY: Final[Mapping[str, str]] = {
    "requests": "Requests that the LLM proxy read.",
    "refused": "Requests that the LLM proxy refused.",
    "rate_limited": "Requests refused because a provider's limits were used up.",
    "unrecorded": "Requests that the archive did not keep up with.",
    "connections": "Connections of clients.",
    "upstream_opened": "Connections opened to providers.",
    "upstream_reused": "Requests that went over a connection already open.",
    "upstream_failed": "Requests whose upstream failed.",
}


def families(daemon: DaemonState) -> Iterator[Family]:
    """Yield everything."""
    yield family("agentsh_build_info", "gauge", "The version that runs.", [({"version": __version__}, 1)])
    yield from _policy(daemon)
    yield from _tallied(daemon.tally)
    yield from _layers(daemon)
    yield from _store(daemon)
    yield from _proxy(daemon)
    yield from _dns(daemon)
    yield _gauge("metrics_timestamp_seconds", "When these numbers were taken.", time.time())


def told(daemon: DaemonState) -> dict[str, Any]:
    """Return what the page is told: Prometheus' text, the dashboard's object, and what is not well."""
    found, wrong = list(families(daemon)), problems(daemon)
    return {"text": render(found), "state": state(found, wrong), "problems": wrong}


def problems(daemon: DaemonState) -> list[str]:
    """Return why the daemon is not ready, empty where it is: a layer that policy wants, or a worker, is missing."""
    if not daemon.ready:
        return ["starting"]
    told = [f"layer {s.layer} is not in force" for s in daemon.layers.layers if s.wanted and not s.in_force]
    if daemon.pool is not None and daemon.pool.trouble:
        told.append(f"proxy: {daemon.pool.trouble}")
    return told + (["the store does not take events"] if daemon.writer.status().trouble else [])


def state(found: Iterable[Family], problems_: list[str]) -> dict[str, Any]:
    """Return the object that the dashboard draws."""
    return {
        "problems": problems_,
        "metrics": {
            each.name: [
                [dict(labels), value]
                for labels, value, suffix in each.samples
                if not suffix or (each.kind, suffix) == ("histogram", "_count")
            ]
            for each in found
        },
    }


def _policy(daemon: DaemonState) -> Iterator[Family]:
    snapshot, reloads = daemon.current.snapshot, daemon.tally.reloads
    enforcing = int(snapshot.config.sandbox.mcp.enforce_policy)
    yield _gauge(
        "policy_generation",
        "What is judged by (policy, tools, pins), counted from the start.",
        snapshot.generation,
    )
    yield _gauge("policy_enforcing", "1 where verdicts are enforced, 0 in audit mode.", enforcing)
    yield _counter(
        "policy_reloads", "Policy files read again.", _by("result", reloads, ("applied", "rejected"))
    )


def _tallied(tally: Tally) -> Iterator[Family]:
    connections = _pairs(tally.connections, ("ebpf", "nftables"))
    yield _counter(
        "calls",
        "Tool calls judged, by the layer that saw them.",
        _pairs(tally.calls, ("llm", "shim", "gateway")),
    )
    yield _counter("connections", "Connections to MCP servers that a layer saw.", connections)
    undeclared = _pairs(tally.undeclared, ("ebpf", "nftables"))
    yield _counter("undeclared_connections", "Connections of sessions where nothing is declared.", undeclared)
    yield _counter("events_lost", "Events that could not be recorded.", _by("layer", tally.lost))
    yield _counter("dlp_finds", "Finds taken out of requests, by kind.", _by("kind", tally.redactions))


def _layers(daemon: DaemonState) -> Iterator[Family]:
    def of_each(name: str) -> Samples:
        return [({"layer": s.layer}, int(getattr(s, name))) for s in daemon.layers.layers]

    for name, what in {"wanted": "policy wants", "in_force": "is in force, as the kernel says"}.items():
        yield family(f"agentsh_layer_{name}", "gauge", f"1 where the layer {what}.", of_each(name))
    for name, what in {"denied": "refused", "tagged": "tagged"}.items():
        text = f"What the layer {what}, as the kernel counts it: connects (ebpf), packets (nftables)."
        yield _counter(f"layer_{name}", text, of_each(name))


def _store(daemon: DaemonState) -> Iterator[Family]:
    store = daemon.writer.status()
    yield _gauge("store_bytes", "Size of the audit trail.", store.bytes)
    yield _gauge("store_queued_events", "Events that wait for the disk.", store.queued)
    yield _counter("store_written", "Events on the disk.", [({}, store.written)])
    yield _counter("store_lost", "Events that did not reach it.", [({}, store.lost)])


def _proxy(daemon: DaemonState) -> Iterator[Family]:
    pool = daemon.pool
    counters = pool.counters() if pool is not None else {}
    yield _gauge("workers", "Proxy workers that run.", len(pool.pids) if pool else 0)
    connections = counters.get("open_connections", 0)
    yield _gauge("proxy_open_connections", "Connections of clients that are open.", connections)
    for name, text in _PROXY.items():
        yield _counter(f"proxy_{name}", text, [({}, counters.get(name, 0))])
    passed = {word(k.partition(".")[2]): n for k, n in counters.items() if k.startswith("uninspected.")}
    yield _counter("uninspected", "Answers that passed without inspection.", _by("reason", passed))
    for name, text in {"answer": "From a request to the end of its answer.", "head": "From a request to the head of its answer."}.items():  # fmt: skip
        counts = [counters.get(f"{name}.{n}", 0) for n in range(len(LATENCY_BOUNDS) + 1)]
        total = counters.get(f"{name}.ms", 0) / 1000
        yield histogram(f"agentsh_proxy_{name}_seconds", text, LATENCY_BOUNDS, counts, total)


def _dns(daemon: DaemonState) -> Iterator[Family]:
    gap = daemon.names.gap()
    quantiles = {"0.5": gap.p50, "0.99": gap.p99} if gap.count else {}
    text = "From an answer of DNS that a client got to its address in force."
    yield summary("agentsh_dns_gap_seconds", text, quantiles, gap.total, gap.count)


def _gauge(name: str, text: str, value: float) -> Family:
    return family(f"agentsh_{name}", "gauge", text, [({}, value)])


def _counter(name: str, text: str, samples: Samples) -> Family:
    return family(f"agentsh_{name}_total", "counter", text, samples)


def _by(label: str, counts: Mapping[str, float], always: Iterable[str] = ()) -> Samples:
    known = dict.fromkeys(always, 0) | dict(counts)
    return [({label: key}, known[key]) for key in sorted(known)]


def _pairs(counts: Mapping[tuple[str, str], int], always: Iterable[str] = ()) -> Samples:
    known = {(layer, action): 0 for layer in always for action in ("allow", "block")} | dict(counts)
    return [({"layer": layer, "action": action}, known[layer, action]) for layer, action in sorted(known)]
