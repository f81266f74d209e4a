"""What the daemon knows of itself as numbers: families for Prometheus, and the same as one object for the dashboard.

No names of tools, sessions or people, and nothing that who sends traffic can make grow. Serving it is `metrics_page`'s business.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from agentsh_net import __version__
from agentsh_net.core.audit.exposition import Family, family, histogram, render, word
from agentsh_net.core.links.link import LATENCY_BOUNDS

if TYPE_CHECKING:
    from agentsh_net.daemon import Daemon

_PROXY: Final[Mapping[str, tuple[str, str]]] = {
    "requests": ("counter", "Requests that the LLM proxy read."),
    "refused": ("counter", "Requests that the LLM proxy refused."),
    "rate_limited": ("counter", "Requests refused because a provider's limits were used up."),
    "unrecorded": ("counter", "Requests that the archive did not keep up with."),
    "connections": ("counter", "Connections of clients."),
    "open_connections": ("gauge", "Connections of clients that are open."),
    "upstream_opened": ("counter", "Connections opened to providers."),
    "upstream_reused": ("counter", "Requests that went over a connection already open."),
    "upstream_failed": ("counter", "Requests whose upstream failed."),
}


def families(daemon: Daemon) -> Iterator[Family]:
    """Yield everything."""
    tally, snapshot = daemon.tally, daemon.current.snapshot
    yield family("agentsh_build_info", "gauge", "The version that runs.", [({"version": __version__}, 1)])
    yield family(
        "agentsh_policy_generation",
        "gauge",
        "The policy in force, counted from the start.",
        [({}, snapshot.generation)],
    )
    yield family(
        "agentsh_policy_enforcing",
        "gauge",
        "1 where verdicts are enforced, 0 in audit mode.",
        [({}, int(snapshot.config.sandbox.mcp.enforce_policy))],
    )
    yield family(
        "agentsh_policy_reloads_total",
        "counter",
        "Policy files read again.",
        _by("result", tally.reloads, ("applied", "rejected")),
    )
    yield family(
        "agentsh_calls_total",
        "counter",
        "Tool calls judged, by the layer that saw them.",
        _pairs(tally.calls, ("llm", "shim")),
    )
    yield family(
        "agentsh_connections_total",
        "counter",
        "Connections to MCP servers that a layer saw.",
        _pairs(tally.connections, ("ebpf", "nftables")),
    )
    yield family(
        "agentsh_events_lost_total", "counter", "Events that could not be recorded.", _by("layer", tally.lost)
    )
    yield family(
        "agentsh_dlp_finds_total",
        "counter",
        "Finds taken out of requests, by kind.",
        _by("kind", tally.redactions),
    )
    yield from _layers(daemon)
    yield from _store(daemon)
    yield from _proxy(daemon)
    yield from _dns(daemon)
    yield family("agentsh_metrics_timestamp_seconds", "gauge", "When these numbers were taken.", [({}, time.time())])  # fmt: skip


def told(daemon: Daemon) -> dict[str, Any]:
    """Return what the page is told: Prometheus' text, the dashboard's object, and what is not well."""
    found, wrong = list(families(daemon)), problems(daemon)
    return {"text": render(found), "state": state(found, wrong), "problems": wrong}


def problems(daemon: Daemon) -> list[str]:
    """Return why the daemon is not ready, empty where it is: a layer that policy wants, or a worker, is missing."""
    if not daemon.ready:
        return ["starting"]
    told = [f"layer {s.layer} is not in force" for s in daemon.layers.layers if s.wanted and not s.in_force]
    if daemon.pool is not None:
        missing = daemon.pool.size - len(daemon.pool.pids)
        told += [f"{missing} proxy workers are not running"] if missing > 0 else []
    return told + (["the store does not take events"] if daemon.writer.status().trouble else [])


def state(found: Iterable[Family], problems_: list[str]) -> dict[str, Any]:
    """Return the object that the dashboard draws."""
    return {
        "problems": problems_,
        "metrics": {
            each.name: [
                [dict(labels), value] for labels, value, suffix in each.samples if suffix in {"", "_count"}
            ]
            for each in found
        },
    }


def _layers(daemon: Daemon) -> Iterator[Family]:
    layers = daemon.layers.layers
    for name, what in {"wanted": "policy wants", "in_force": "is in force, as the kernel says"}.items():
        yield family(f"agentsh_layer_{name}", "gauge", f"1 where the layer {what}.", [({"layer": s.layer}, int(getattr(s, name))) for s in layers])  # fmt: skip
    for name, what in {"denied": "refused", "tagged": "tagged"}.items():
        yield family(f"agentsh_layer_{name}_total", "counter", f"What the layer {what}, as the kernel counts it: connects (ebpf), packets (nftables).", [({"layer": s.layer}, int(getattr(s, name))) for s in layers])  # fmt: skip


def _store(daemon: Daemon) -> Iterator[Family]:
    store = daemon.writer.status()
    yield family("agentsh_store_bytes", "gauge", "Size of the audit trail.", [({}, store.bytes)])
    yield family(
        "agentsh_store_queued_events", "gauge", "Events that wait for the disk.", [({}, store.queued)]
    )
    yield family("agentsh_store_written_total", "counter", "Events on the disk.", [({}, store.written)])
    yield family("agentsh_store_lost_total", "counter", "Events that did not reach it.", [({}, store.lost)])


def _proxy(daemon: Daemon) -> Iterator[Family]:
    pool = daemon.pool
    counters = pool.counters() if pool is not None else {}
    yield family("agentsh_workers", "gauge", "Proxy workers that run.", [({}, len(pool.pids) if pool else 0)])
    for name, (kind, text) in _PROXY.items():
        suffix = "_total" if kind == "counter" else ""
        yield family(f"agentsh_proxy_{name}{suffix}", kind, text, [({}, counters.get(name, 0))])
    passed = {word(k.partition(".")[2]): n for k, n in counters.items() if k.startswith("uninspected.")}
    yield family(
        "agentsh_uninspected_total",
        "counter",
        "Answers that passed without inspection.",
        _by("reason", passed),
    )
    for name, text in {"answer": "From a request to the end of its answer.", "head": "From a request to the head of its answer."}.items():  # fmt: skip
        counts = [counters.get(f"{name}.{n}", 0) for n in range(len(LATENCY_BOUNDS) + 1)]
        total = counters.get(f"{name}.ms", 0) / 1000
        yield histogram(f"agentsh_proxy_{name}_seconds", text, LATENCY_BOUNDS, counts, total)


def _dns(daemon: Daemon) -> Iterator[Family]:
    gap = daemon.names.gap()
    found = [({"quantile": "0.5"}, gap.p50), ({"quantile": "0.99"}, gap.p99)]
    yield family(
        "agentsh_dns_gap_seconds",
        "gauge",
        "From an answer of DNS that a client got to its address in force.",
        found if gap.count else [],
    )


def _by(
    label: str, counts: Mapping[str, float], always: Iterable[str] = ()
) -> list[tuple[dict[str, str], float]]:
    known = dict.fromkeys(always, 0) | dict(counts)
    return [({label: key}, known[key]) for key in sorted(known)]


def _pairs(
    counts: Mapping[tuple[str, str], int], always: Iterable[str] = ()
) -> list[tuple[dict[str, str], float]]:
    known = {(layer, action): 0 for layer in always for action in ("allow", "block")} | dict(counts)
    return [({"layer": layer, "action": action}, known[layer, action]) for layer, action in sorted(known)]
