"""What the proxy bench loads its targets with, and the figures that have to be reached.

How a load is run and measured is `compare`'s business.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scenario:
    """A load: `mode` json or sse, so many connections, for so many seconds after a warm-up."""

    mode: str
    connections: int
    path: str
    seconds: float
    warm: float
    paced: bool = False  # one event a while on many streams: with real-time priority, since it sleeps mostly
    targets: tuple[str, ...] = ()  # who is measured with it; empty: everyone but the `-tls` and `-2` targets


_OURS = ("agentsh",)
_TLS = ("agentsh-tls", "go-reference-tls")
# A stream of text; what a call costs has scenarios of its own.
_TEXT = "/v1/messages?n=200&tool=none"
_PACED = "/v1/messages?n=200&pace=10000"

SCENARIOS = {
    "json": Scenario("json", 32, "/v1/messages?x=1", 2.0, 0.4),
    "json1": Scenario("json", 1, "/v1/messages?x=1", 1.5, 0.3),
    "sse": Scenario("sse", 32, _TEXT, 2.0, 0.5),
    "sseco": Scenario("sse", 16, "/v1/messages?n=1000&co=16000&tool=none", 2.0, 0.5),
    "p1c1": Scenario("sse", 1, "/v1/messages?n=500&pace=1000&tool=none", 2.0, 0.3, paced=True),
    "p1c25": Scenario("sse", 25, "/v1/messages?n=500&pace=1000&tool=none", 2.0, 0.5, paced=True),
    "p1c100": Scenario("sse", 100, "/v1/messages?n=500&pace=1000&tool=none", 2.5, 1.0),
    "p10c100": Scenario("sse", 100, f"{_PACED}&tool=none", 2.5, 0.7, paced=True),
    "oai": Scenario("sse", 32, "/v1/chat/completions?n=200&tool=none", 2.0, 0.5),
    # Ours alone: the same events on a path that no dialect reads, a call of a tool in every tenth or in every stream, slow frames.
    "raw": Scenario("sse", 100, f"/anthropic/v1/files{_PACED[12:]}&tool=none", 2.5, 0.7, paced=True, targets=_OURS),
    "blocked10": Scenario("sse", 100, f"{_PACED}&tool=delete_files&share=10", 2.5, 0.7, paced=True, targets=_OURS),
    "blocked": Scenario("sse", 32, "/v1/messages?n=200&tool=delete_files", 2.0, 0.5, targets=_OURS),
    "allowed": Scenario("sse", 32, "/v1/messages?n=200&tool=get_weather", 2.0, 0.5, targets=_OURS),
    "slow": Scenario("sse", 32, f"{_TEXT}&esc=1", 2.0, 0.5, targets=_OURS),
    "tls": Scenario("sse", 100, f"{_PACED}&tool=none", 2.5, 0.7, paced=True, targets=_TLS),
    "workers": Scenario("json", 32, "/v1/messages?x=1", 2.0, 0.4, targets=("agentsh", "agentsh-2")),
}  # fmt: skip


@dataclass(frozen=True)
class Claim:
    """A figure that this version has to reach: ours to a peer's, as a ratio of medians, in a scenario or over two (`against`)."""

    scenario: str
    figure: str
    peer: str
    bound: float
    at_most: bool
    ours: str = "agentsh"
    against: str = ""  # the scenario of the peer's median; empty: the same
    direct: bool = False  # of what each adds to no proxy at all


CLAIMS = (
    Claim("json", "cpu_us", "nginx", 1.7, at_most=True),
    Claim("json", "cpu_us", "go-reference", 0.4, at_most=True),
    Claim("p10c100", "cpu_us", "nginx", 1.5, at_most=True),
    Claim("p10c100", "cpu_us", "go-reference", 0.8, at_most=True),
    Claim("p10c100", "lat_p50", "nginx", 1.4, at_most=True, direct=True),
    Claim("p10c100", "lat_p99", "nginx", 1.7, at_most=True, direct=True),
    Claim("p1c100", "eps", "direct", 0.98, at_most=False),
    Claim("p1c100", "lat_p99", "nginx", 3.0, at_most=True),
    Claim("sse", "eps", "nginx", 0.9, at_most=False),
    Claim("sse", "eps", "go-reference", 2.0, at_most=False),
    Claim("sseco", "cpu_us", "nginx", 3.0, at_most=True),
    Claim("sseco", "cpu_us", "go-reference", 0.1, at_most=True),
    Claim("p10c100", "cpu_us", "agentsh", 1.15, at_most=True, against="raw"),
    Claim("blocked10", "cpu_us", "agentsh", 1.05, at_most=True, against="p10c100"),
    Claim("sse", "cpu_us", "agentsh", 0.3, at_most=False, against="slow"),
    Claim("tls", "cpu_us", "go-reference-tls", 0.85, at_most=True, ours="agentsh-tls"),
    # On one core two workers share what one has: what a unit costs them says what two cores would give.
    Claim("workers", "cpu_us", "agentsh", 2 / 1.7, at_most=True, ours="agentsh-2"),
)

FIGURES = {"cpu_us": "CPU per unit", "eps": "events/s", "lat_p50": "p50", "lat_p99": "p99"}


def plain(target: str) -> bool:
    """Say whether a target takes part in every scenario."""
    return not target.endswith(("-tls", "-2"))
