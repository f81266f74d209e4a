"""The first lines of `run` tell what is in force, what is not and what mends it, and what to export."""

from __future__ import annotations

from dataclasses import replace

from agentsh_net import briefing
from agentsh_net.core.configuration.config import parse
from agentsh_net.core.network.plane import LayerStatus
from agentsh_net.core.registry import Registry
from agentsh_net.core.snapshot import Snapshot
from agentsh_net.core.trust.pins import Pins

FORCE = LayerStatus("ebpf", wanted=True, in_force=True, detail="4 programs")
OFF = LayerStatus(
    "nftables", wanted=True, in_force=False, reason="no binding", remedy="apt install python3-nftables"
)
UNWANTED = LayerStatus("nftables", wanted=False, in_force=False, reason="not in network.layers")


def snapshot(*, enforce: bool = True, mode: str = "enforce", source: str = "") -> Snapshot:
    server = {"id": "a", "type": "http", "url": "http://10.0.0.1/mcp"}
    config = parse(
        {
            "version": 1,
            "sandbox": {"mcp": {"enforce_policy": enforce, "servers": [server]}},
            "network": {"mode": mode},
        }
    )
    return Snapshot(3, "sha256:0123456789abcdef", config, Registry(config.sandbox.mcp.servers), Pins())


def test_the_whole_briefing_reads_as_a_person_needs_it() -> None:
    assert briefing.brief(
        snapshot(), "p.yaml", [FORCE, OFF], "http://127.0.0.1:8484", ["~/.x.json: not JSON"]
    ) == [
        "policy 0123456789ab (generation 3) from p.yaml: enforce, 1 MCP server",
        "warning: ~/.x.json: not JSON",
        "ebpf: in force: connect() to a denied server fails (4 programs)",
        "nftables: NOT IN FORCE: no binding (fix: apt install python3-nftables)",
        "LLM proxy: http://127.0.0.1:8484; point agents at it:",
        "  export ANTHROPIC_BASE_URL=http://127.0.0.1:8484/anthropic",
        "  export OPENAI_BASE_URL=http://127.0.0.1:8484/openai/v1",
        "  export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:8484/gemini",
        "  export GEMINI_BASE_URL=http://127.0.0.1:8484/gemini",
        "  export OLLAMA_HOST=http://127.0.0.1:8484/ollama",
    ]


def test_audit_never_claims_that_something_is_refused() -> None:
    for quiet in (snapshot(enforce=False), snapshot(mode="tag")):
        assert briefing.layer_lines([FORCE], quiet.config) == [
            "ebpf: in force: connections are recorded, none is refused (4 programs)"
        ]


def test_how_programs_are_held_is_said_behind_what_they_are() -> None:
    held = replace(FORCE, attachment="links pinned in /sys/fs/bpf")
    assert briefing.layer_lines([held], snapshot().config) == [
        "ebpf: in force: connect() to a denied server fails (4 programs; links pinned in /sys/fs/bpf)"
    ]


def test_a_layer_nobody_asked_for_is_no_alarm() -> None:
    assert briefing.layer_lines([UNWANTED], snapshot().config) == ["nftables: off (not in network.layers)"]


def test_a_proxy_that_is_off_says_so() -> None:
    assert briefing.proxy_lines("", ["openai"]) == ["LLM proxy: off (proxy.mode is disabled)"]


def test_names_from_other_peoples_files_cannot_write_to_the_terminal() -> None:
    (line,) = briefing.server_lines([], ["\x1b[2J gone"])
    assert "\x1b" not in line


def test_what_is_kept_or_changed_of_requests_is_said() -> None:
    def lines(**more: object) -> str:
        return "\n".join(briefing.storage_lines(parse(more)))

    assert lines() == ""
    assert "redacts" in lines(dlp={"mode": "redact"})
    both = lines(dlp={"mode": "tokenize"}, llm_storage={"store_bodies": True})
    assert "tokenizes" in both
    assert "as DLP lets them leave" in both
    assert "mcp-only" in lines(proxy={"mode": "mcp-only"}, dlp={"mode": "redact"})


def test_who_shall_be_refused_and_is_nowhere_to_be_found_is_said() -> None:
    servers = [
        {"id": name, "type": "http", "url": f"http://{name}.test/mcp"} for name in ("evil", "good", "known")
    ]
    rules = {
        "servers": servers,
        "server_policy": "denylist",
        "denied_servers": [{"id": "evil"}, {"id": "known"}],
    }
    config = parse(
        {"version": 1, "sandbox": {"mcp": rules}, "network": {"mode": "enforce", "llm_direct": "refuse"}}
    )
    whole = Snapshot(1, "sha256:00", config, Registry(config.sandbox.mcp.servers), Pins())
    problems = {"evil.test": "A: SERVFAIL", "good.test": "A: SERVFAIL", "api.openai.com": "A: Timeout"}
    nowhere = "NOT IN FORCE: no address is known that could be refused, until DNS or the hosts file has one"
    assert briefing.unknown_lines(whole, problems) == [
        f"api.openai.com: {nowhere}: A: Timeout",
        f"evil.test: {nowhere}: A: SERVFAIL",
    ]
    assert briefing.unknown_lines(whole, {}) == []
    assert briefing.unknown_lines(snapshot(mode="tag"), {"10.0.0.1": "never"}) == []
