"""A mapping becomes a Config whole, or is refused with every problem at once, each where it stands."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration import settings
from agentsh_net.core.configuration.config import digest, parse
from agentsh_net.core.errors import ConfigError, Problem

# The complete example of the interfaces page, with its elisions (`sha256:...`, `{...}`) filled in.
COMPLETE = """
version: 1
sandbox:
  mcp:
    enforce_policy: true
    fail_closed: false
    native_tools: [Bash, Read, "preset:claude-code"]
    servers:
      - {id: filesystem, type: stdio, command: npx, args: ["@modelcontextprotocol/server-filesystem", "/home/user"], env: {}}
      - {id: weather-api, type: http, url: "https://mcp.example.com/mcp", headers: {Authorization: "Bearer weather"}}
      - {id: legacy, type: sse, url: "https://mcp.internal.corp:8443/sse", tls_fingerprint: "sha256:0000000000000000000000000000000000000000000000000000000000000001"}
    server_policy: allowlist
    allowed_servers: [{id: filesystem}]
    denied_servers: [{id: "*"}]
    tool_policy: denylist
    allowed_tools: [{server: "*", tool: "*"}]
    denied_tools: [{server: weather-api, tool: "delete_*"}]
    version_pinning: {enabled: true, on_change: block, auto_trust_first: true}
    rate_limits: {enabled: true, default_rpm: 60, default_burst: 10, per_server: {weather-api: {calls_per_minute: 10, burst: 3}}}
    inspection: {block_severity: critical, custom_patterns: []}
    output_inspection: {enabled: true, on_detection: alert}
    sampling: {policy: block, per_server: {}}
    cross_server: {enabled: false, read_then_send_window: 30s, burst: {calls: 10, window: 5s}, same_turn_only: true}
proxy:
  mode: embedded
  listen: 127.0.0.1
  port: 8484
  workers: 1
  max_frame: 1MiB
  providers:
    anthropic: {base_url: "https://api.anthropic.com"}
    openai: {base_url: "https://api.openai.com/v1"}
    my-gateway: {dialect: openai, base_url: "https://llm.corp/openai/v1"}
dlp: {mode: redact, patterns: {email: true}, custom_patterns: [{name: badge, display: Badge, regex: "B-[0-9]{6}"}]}
llm_storage: {store_bodies: false, retention: {max_age_days: 30, max_size_mb: 500}}
gateway:
  enabled: true
  listen: 127.0.0.1
  port: 8485
  max_request: 4MiB
  max_response: 100MiB
  allowed_origins: []
  security_schemes:
    - {id: client-key, type: apiKey, in: header, name: X-Client-API-Key, credential: "client"}
    - {id: backend-key, type: apiKey, in: header, name: X-Backend-API-Key, credential: "backend"}
    - {id: backend-bearer, type: http, scheme: bearer, credential: "token"}
  servers:
    weather-api:
      timeout: 60s
      downstream_security: client-key
      upstream_security: backend-key
      allow_tools: [get_weather, "list_*"]
      tools: {get-secure-product: {upstream_security: backend-bearer}}
network:
  mode: tag
  required: false
  layers: [ebpf, nftables]
  scope: host
  llm_direct: tag
  on_exit: remove
  on_crash: keep
  on_shared_address: sni
  resolve: {min_ttl: 5s, max_ttl: 1h, grace: 5m, snoop_dns: true}
store: {path: /var/lib/agentsh-net/events.db, retention: {max_age_days: 90, max_size_mb: 1000}}
metrics: {listen: 127.0.0.1, port: 9484}
log: {format: text, level: info}
"""


def complete() -> dict[str, Any]:
    return yaml.safe_load(COMPLETE)


def mcp(**keys: Any) -> dict[str, Any]:
    return {"sandbox": {"mcp": keys}}


def problems(mapping: Any, **options: bool) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        parse(mapping, **options)
    return list(caught.value.problems)


def only_problem(mapping: Any) -> Problem:
    found = problems(mapping)
    assert len(found) == 1, [str(p) for p in found]
    return found[0]


def test_nothing_configured_gives_the_defaults() -> None:
    assert parse({}) == settings.Config()
    assert parse({"version": 1}) == settings.Config()


def test_the_complete_example_parses_whole() -> None:
    config = parse(complete())
    one = config.sandbox.mcp
    assert [(s.id, s.transport, s.host, s.port) for s in one.servers] == [
        ("filesystem", "stdio", "", 0),
        ("weather-api", "http", "mcp.example.com", 443),
        ("legacy", "sse", "mcp.internal.corp", 8443),
    ]
    assert one.servers[0].args == ("@modelcontextprotocol/server-filesystem", "/home/user")
    assert one.servers[1].headers == {"Authorization": "Bearer weather"}
    assert one.allowed_servers == (settings.ServerRule("filesystem", "sandbox.mcp.allowed_servers[0]"),)
    assert one.denied_tools == (
        settings.ToolRule("weather-api", "delete_*", path="sandbox.mcp.denied_tools[0]"),
    )
    assert one.rate_limits == settings.RateLimits(True, 60, 10, {"weather-api": settings.RateLimit(10, 3)})
    assert one.cross_server.read_then_send_window == 30.0
    assert config.proxy.max_frame == 1 << 20
    assert config.proxy.providers["my-gateway"] == settings.Provider(
        "my-gateway", "openai", "https://llm.corp/openai/v1"
    )
    assert config.gateway.max_response == 100 << 20
    assert config.gateway.servers["weather-api"] == settings.GatewayServer(
        60.0,
        "client-key",
        "backend-key",
        allow_tools=("get_weather", "list_*"),
        tools={"get-secure-product": settings.GatewayTool("backend-bearer")},
    )
    assert config.gateway.security_schemes[0].location == "header"
    assert config.network.resolve == settings.Resolve(5.0, 3600.0, 300.0, snoop_dns=True)
    assert config.dlp.custom_patterns[0].regex == "B-[0-9]{6}"
    assert config.metrics.listen == "127.0.0.1"


def test_mcp_only_leaves_bodies_alone_and_keeps_them() -> None:
    forced = parse({"proxy": {"mode": "mcp-only"}, "dlp": {"mode": "redact"}})
    assert (forced.dlp.mode, forced.llm_storage.store_bodies) == ("disabled", True)
    free = parse({"dlp": {"mode": "redact"}})
    assert (free.dlp.mode, free.llm_storage.store_bodies) == ("redact", False)


def test_who_writes_a_section_down_means_it_though_the_key_that_switches_it_on_is_left_out() -> None:
    written = parse({"metrics": {"port": 9000}, "dlp": {"patterns": {"phone": False}}})
    assert (written.metrics.listen, written.metrics.port, written.dlp.mode) == ("127.0.0.1", 9000, "redact")
    left_out = parse({})
    assert (left_out.metrics.listen, left_out.dlp.mode) == ("", "disabled")
    assert parse({"dlp": {"mode": "disabled"}}).dlp.mode == "disabled"


def test_a_providers_limits_are_read_and_none_is_the_default() -> None:
    limits = {"requests_per_minute": 60, "tokens_per_minute": 1e5}
    providers = parse({"proxy": {"providers": {"openai": {"limits": limits}}}}).proxy.providers
    assert providers["openai"].limits == settings.ProviderLimits(60, 1e5)
    assert providers["openai"].base_url == "https://api.openai.com/v1"
    assert providers["anthropic"].limits == settings.ProviderLimits()


def test_a_dlp_pattern_that_there_is_not_is_told() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"dlp": {"patterns": {"emial": False}}})
    assert "did you mean `email`" in caught.value.problems[0].expected


def test_nobody_is_promised_that_a_killed_daemon_takes_its_rules_away() -> None:
    with pytest.raises(ConfigError) as caught:
        parse({"network": {"on_crash": "remove"}})
    assert caught.value.problems[0].path == "network.on_crash"


def test_everything_that_the_example_switches_on_is_available() -> None:
    config = parse(complete())
    assert (config.gateway.enabled, config.network.mode) == (True, complete()["network"]["mode"])


def leaf_classes(cls: Any = settings.Config) -> list[Any]:
    found = [cls]
    for field in dataclasses.fields(cls):
        default = getattr(cls(), field.name)
        if dataclasses.is_dataclass(default):
            found += leaf_classes(type(default))
    return found


@pytest.mark.parametrize("cls", leaf_classes(), ids=lambda c: c.__name__)
def test_every_setting_has_its_key(cls: Any) -> None:
    """An unknown key names the known ones only if it is near: so ask for each attribute with a wrong type."""
    paths = {
        "Sandbox": "sandbox",
        "Mcp": "sandbox.mcp",
        "VersionPinning": "sandbox.mcp.version_pinning",
        "RateLimits": "sandbox.mcp.rate_limits",
        "Inspection": "sandbox.mcp.inspection",
        "OutputInspection": "sandbox.mcp.output_inspection",
        "ServerAsks": "sandbox.mcp.sampling",
        "CrossServer": "sandbox.mcp.cross_server",
        "Burst": "sandbox.mcp.cross_server.burst",
        "Retention": "store.retention",
        "LlmStorage": "llm_storage",
        "Resolve": "network.resolve",
        "Egress": "network.egress",
        "Config": "",
    }
    path = paths.get(cls.__name__, cls.__name__.lower())
    mapping: Any = {field.name: object() for field in dataclasses.fields(cls)}
    for step in reversed(path.split(".") if path else []):
        mapping = {step: mapping}
    found = problems(mapping)
    assert {p.path for p in found} == {f"{path}.{f.name}".lstrip(".") for f in dataclasses.fields(cls)}
    assert not [p for p in found if "unknown key" in p.found]


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    found = problems(
        {
            "version": 2,
            "sandbox": {"mcp": {"fail_closed": 1, "alowed_servers": [], "denied_tools": [{"tool": "a["}]}},
            "proxy": {"port": 70000, "listen": "example.com"},
            "network": {"resolve": {"grace": "-5s"}},
        }
    )
    assert [p.path for p in found] == [
        "version",
        "sandbox.mcp.fail_closed",
        "sandbox.mcp.alowed_servers",
        "sandbox.mcp.denied_tools[0].tool",
        "proxy.port",
        "proxy.listen",
        "network.resolve.grace",
    ]
    assert str(found[2]) == (
        "sandbox.mcp.alowed_servers: found the unknown key 'alowed_servers'; expected `allowed_servers`"
    )


@pytest.mark.parametrize("value", [None, [], "text", 5, True], ids=repr)
def test_a_file_that_is_no_mapping_is_one_problem(value: Any) -> None:
    assert only_problem(value).expected == "a mapping"


@pytest.mark.parametrize("version", [0, 2, "1", True, None, 1.0], ids=repr)
def test_another_version_is_refused(version: Any) -> None:
    assert only_problem({"version": version}).path == "version"


@pytest.mark.parametrize(
    ("mapping", "path"),
    [
        ({"proxy": None}, "proxy"),
        ({"proxy": {"port": True}}, "proxy.port"),
        ({"proxy": {"port": "8484"}}, "proxy.port"),
        ({"proxy": {"port": -1}}, "proxy.port"),
        ({"proxy": {"port": 65536}}, "proxy.port"),
        ({"proxy": {"workers": 0}}, "proxy.workers"),
        ({"proxy": {"max_frame": 0}}, "proxy.max_frame"),
        ({"proxy": {"max_frame": "1Mib/s"}}, "proxy.max_frame"),
        ({"proxy": {"mode": "embeded"}}, "proxy.mode"),
        ({"proxy": {"mode": False}}, "proxy.mode"),
        ({"proxy": {"listen": "127.0.0.1:80"}}, "proxy.listen"),
        ({"proxy": {"connect_timeout": 0}}, "proxy.connect_timeout"),
        (
            {"proxy": {"providers": {"s": {"dialect": "openai", "base_url": "https://x"}}}},
            "proxy.providers.s",
        ),
        (
            {"proxy": {"providers": {"Big": {"dialect": "openai", "base_url": "https://x"}}}},
            "proxy.providers.Big",
        ),
        ({"proxy": {"providers": {"x": {"base_url": "https://x"}}}}, "proxy.providers.x.dialect"),
        ({"proxy": {"providers": {"x": {"dialect": "openai"}}}}, "proxy.providers.x.base_url"),
        (
            {"proxy": {"providers": {"openai": {"base_url": "https://x/?k=1"}}}},
            "proxy.providers.openai.base_url",
        ),
        ({"network": {"mode": "enforced"}}, "network.mode"),
        ({"network": {"layers": ["ebpf", "iptables"]}}, "network.layers[1]"),
        ({"network": {"layers": ["ebpf", "ebpf"]}}, "network.layers[1]"),
        ({"network": {"layers": "ebpf"}}, "network.layers"),
        ({"network": {"mark": 1}}, "network.mark"),
        ({"network": {"mark_mask": 0xFF}}, "network.mark_mask"),
        ({"network": {"scope": "netns", "layers": ["ebpf"]}}, "network.layers"),
        ({"network": {"resolve": {"min_ttl": "2h"}}}, "network.resolve.min_ttl"),
        ({"store": {"path": "events.db"}}, "store.path"),
        ({"store": {"retention": {"max_age_days": float("nan")}}}, "store.retention.max_age_days"),
        ({"control": {"socket": "/" + "x" * 107}}, "control.socket"),
        ({"log": {"level": "verbose"}}, "log.level"),
        ({"dlp": {"custom_patterns": [{"name": "a", "regex": "("}]}}, "dlp.custom_patterns[0].regex"),
        (mcp(native_tools=["Bash", ""]), "sandbox.mcp.native_tools[1]"),
        (mcp(server_policy="allow"), "sandbox.mcp.server_policy"),
        (mcp(allowed_servers=[{}]), "sandbox.mcp.allowed_servers[0].id"),
        (mcp(allowed_servers=[{"id": "a", "tool": "b"}]), "sandbox.mcp.allowed_servers[0].tool"),
        (mcp(denied_tools=[{}]), "sandbox.mcp.denied_tools[0]"),
        (mcp(denied_tools=[{"args": {"path": {"glob": "/etc/*"}}}]), "sandbox.mcp.denied_tools[0]"),
        (mcp(denied_tools=["rm"]), "sandbox.mcp.denied_tools[0]"),
        (mcp(denied_tools=[{"content_hash": "abc"}]), "sandbox.mcp.denied_tools[0].content_hash"),
        (
            mcp(rate_limits={"per_server": {"x": {"calls_per_minute": 1}}}),
            "sandbox.mcp.rate_limits.per_server.x",
        ),
        (mcp(rate_limits={"default_rpm": 0}), "sandbox.mcp.rate_limits.default_rpm"),
        (mcp(rate_limits={"default_burst": 0}), "sandbox.mcp.rate_limits.default_burst"),
        (mcp(inspection={"block_severity": "fatal"}), "sandbox.mcp.inspection.block_severity"),
        (mcp(**{"a.b": 1}), "sandbox.mcp['a.b']"),
        ({"a\x1b[31m": 1}, "['a\\x1b[31m']"),
        ({5: 1}, ""),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_one_slip_is_one_problem_where_it_stands(mapping: Any, path: str) -> None:
    assert only_problem(mapping).path == path


@pytest.mark.parametrize(
    "network",
    [
        {"mark": 0x5, "mark_mask": 0xF},
        {"scope": "netns", "layers": ["nftables"], "mode": "enforce"},
        {"scope": "netns", "layers": ["ebpf", "nftables"], "mode": "enforce"},
        {"scope": "netns", "layers": [], "mode": "enforce"},
        {"scope": "netns", "layers": ["ebpf"], "mode": "off"},
        {"resolve": {"min_ttl": "1h", "max_ttl": "1h"}},
    ],
)
def test_network_settings_that_go_together_are_taken(network):
    assert told({"network": network}) == []


STDIO = {"id": "fs", "type": "stdio", "command": "npx"}
HTTP = {"id": "web", "type": "http", "url": "https://mcp.example.com/mcp"}


@pytest.mark.parametrize(
    ("server", "key"),
    [
        (STDIO | {"id": ""}, ".id"),
        (STDIO | {"id": "a*"}, ".id"),
        (STDIO | {"id": " a"}, ".id"),
        (STDIO | {"id": "a\u200bb"}, ".id"),
        (STDIO | {"id": 5}, ".id"),
        ({"type": "stdio", "command": "npx"}, ".id"),
        ({"id": "a", "command": "npx"}, ".type"),
        (STDIO | {"type": "streamable-http"}, ".type"),
        ({"id": "a", "type": "stdio"}, ".command"),
        (STDIO | {"command": ["npx"]}, ".command"),
        (STDIO | {"args": "-y x"}, ".args"),
        (STDIO | {"args": ["-p", 80]}, ".args[1]"),
        (STDIO | {"env": {"A": 1}}, ".env.A"),
        (STDIO | {"env": {"A=B": "1"}}, "['A=B']"),
        (STDIO | {"url": "https://x/"}, ".url"),
        (STDIO | {"commnd": "x"}, ".commnd"),
        ({"id": "a", "type": "http"}, ".url"),
        ({"id": "a", "type": "sse"}, ".url"),
        (HTTP | {"command": "npx"}, ".command"),
        (HTTP | {"url": "mcp.example.com/mcp"}, ".url"),
        (HTTP | {"url": "ftp://mcp.example.com/"}, ".url"),
        (HTTP | {"url": "https:///mcp"}, ".url"),
        (HTTP | {"url": "https://user:pass@host/"}, ".url"),
        (HTTP | {"url": "https://host:65536/"}, ".url"),
        (HTTP | {"url": "https://host:0/"}, ".url"),
        (HTTP | {"url": "https://2130706433/"}, ".url"),
        (HTTP | {"headers": {"X Y": "1"}}, ".headers['X Y']"),
        (HTTP | {"headers": {"X": "1\r\nY: 2"}}, ".headers.X"),
        (HTTP | {"tls_fingerprint": "sha256:12"}, ".tls_fingerprint"),
        (HTTP | {"url": "http://h/", "tls_fingerprint": "ab" * 32}, ".tls_fingerprint"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_a_server_declared_wrongly_is_one_problem(server: Any, key: str) -> None:
    path = only_problem(mcp(servers=[server])).path
    assert path.startswith("sandbox.mcp.servers[0]")
    assert path.endswith(key)


def test_a_url_gives_the_host_and_port_that_will_be_resolved() -> None:
    urls = {
        "https://MCP.Example.com/x": ("mcp.example.com", 443),
        "http://bücher.example:8080/": ("xn--bcher-kva.example", 8080),
        "http://[2001:DB8::1]/": ("2001:db8::1", 80),
        "https://10.0.0.1:8443": ("10.0.0.1", 8443),
    }
    servers = [{"id": f"s{i}", "type": "http", "url": url} for i, url in enumerate(urls)]
    assert [(s.host, s.port) for s in parse(mcp(servers=servers)).sandbox.mcp.servers] == list(urls.values())


@pytest.mark.parametrize("other", ["fs", "FS", "ｆｓ"])  # full width
def test_an_id_declared_twice_names_the_first(other: str) -> None:
    problem = only_problem(mcp(servers=[STDIO, HTTP, STDIO | {"id": other}]))
    assert problem.path == "sandbox.mcp.servers[2]"
    assert "sandbox.mcp.servers[0]" in problem.found


def test_a_reference_to_no_declared_server_names_the_nearest() -> None:
    limits = {"per_server": {"wether": {"calls_per_minute": 1}}}
    problem = only_problem(mcp(servers=[HTTP | {"id": "weather"}, STDIO], rate_limits=limits))
    assert problem.path == "sandbox.mcp.rate_limits.per_server.wether"
    assert "`weather`" in problem.expected


def test_a_reference_is_returned_as_the_server_is_spelt() -> None:
    limits = {"per_server": {"WEB": {"calls_per_minute": 30}}}
    assert parse(mcp(servers=[HTTP], rate_limits=limits)).sandbox.mcp.rate_limits.per_server == {
        "web": settings.RateLimit(30, 5)
    }


def test_two_spellings_of_one_server_do_not_overwrite_each_other() -> None:
    limits = {"per_server": {"WEB": {"calls_per_minute": 30}, "web": {"calls_per_minute": 1}}}
    assert only_problem(mcp(servers=[HTTP], rate_limits=limits)).path.endswith("per_server.web")


def test_a_broken_server_can_still_be_referred_to() -> None:
    limits = {"per_server": {"web": {"calls_per_minute": 1}}}
    assert only_problem(mcp(servers=[HTTP | {"url": "x"}], rate_limits=limits)).path.endswith(".url")


@pytest.mark.parametrize(("rpm", "burst"), [(1, 1), (6, 1), (60, 10), (0.5, 1), (100, 16)])
def test_an_omitted_burst_is_ten_seconds_worth(rpm: float, burst: int) -> None:
    limits = parse(mcp(rate_limits={"default_rpm": rpm})).sandbox.mcp.rate_limits
    assert limits.default_burst == burst


def test_rules_accept_a_plain_server_id() -> None:
    rules = parse(mcp(allowed_servers=["fs", {"id": "web*"}])).sandbox.mcp.allowed_servers
    assert [(r.id, r.path) for r in rules] == [
        ("fs", "sandbox.mcp.allowed_servers[0]"),
        ("web*", "sandbox.mcp.allowed_servers[1]"),
    ]


def test_a_tool_rule_without_server_or_tool_means_every_one() -> None:
    rules = parse(mcp(denied_tools=[{"tool": "rm"}, {"server": "x"}])).sandbox.mcp.denied_tools
    assert [(r.server, r.tool) for r in rules] == [("*", "rm"), ("x", "*")]


def test_providers_of_the_file_are_added_to_the_built_in_ones_and_override_them() -> None:
    proxy = {"providers": {"anthropic": {"base_url": "https://eu.corp/a/"}}}
    providers = parse({"proxy": proxy}).proxy.providers
    assert providers["anthropic"] == settings.Provider("anthropic", "anthropic", "https://eu.corp/a/")
    assert providers["openai"] == settings.DEFAULT_PROVIDERS["openai"]


GATEWAY = {
    "security_schemes": [
        {"id": "key", "type": "apiKey", "in": "query", "name": "k", "credential": "hunter2"},
        {"id": "basic", "type": "http", "scheme": "basic", "credential": "user:hunter2"},
    ],
    "servers": {"web": {"upstream_security": "key"}},
}


def change(path: str, value: Any) -> Callable[[dict[str, Any]], None]:
    *steps, last = [int(s) if s.isdigit() else s for s in path.split(".")]

    def apply(mapping: Any) -> None:
        for step in steps:
            mapping = mapping[step]
        if value is None:
            del mapping[last]
        else:
            mapping[last] = value

    return apply


@pytest.mark.parametrize(
    ("edit", "path"),
    [
        (change("security_schemes.0.in", None), "security_schemes[0].in"),
        (change("security_schemes.0.name", None), "security_schemes[0].name"),
        (change("security_schemes.0.scheme", "basic"), "security_schemes[0].scheme"),
        (change("security_schemes.0.credential", ""), "security_schemes[0].credential"),
        (change("security_schemes.0.credential", 5), "security_schemes[0].credential"),
        (change("security_schemes.1.scheme", None), "security_schemes[1].scheme"),
        (change("security_schemes.1.scheme", "digest"), "security_schemes[1].scheme"),
        (change("security_schemes.1.credential", "hunter2"), "security_schemes[1].credential"),
        (change("security_schemes.1.id", "KEY"), "security_schemes[1]"),
        (change("servers.web.upstream_security", "kee"), "servers.web.upstream_security"),
        (change("servers.web.passthrough", True), "servers.web.passthrough"),
        (
            change("servers.web.tools", {"t": {"upstream_security": "nope"}}),
            "servers.web.tools.t.upstream_security",
        ),
        (change("servers.web.timeout", "-1s"), "servers.web.timeout"),
        (change("servers.web.allow_tools", ["[a"]), "servers.web.allow_tools[0]"),
        (change("servers.other", {}), "servers.other"),
        (change("allowed_origins", ["https://a/b"]), "allowed_origins[0]"),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)
def test_a_slip_in_the_gateway_is_one_problem(edit: Callable[[dict[str, Any]], None], path: str) -> None:
    gateway = json.loads(json.dumps(GATEWAY))
    edit(gateway)
    assert only_problem(mcp(servers=[HTTP]) | {"gateway": gateway}).path == f"gateway.{path}"


def test_secrets_never_reach_a_problem() -> None:
    secret = "hunter2\n"
    found = problems(
        mcp(
            servers=[
                STDIO | {"args": secret, "env": {"A": [secret]}},
                HTTP | {"headers": {"Authorization": secret}, "url": "https://u:hunter2@host/"},
                HTTP | {"id": "q", "url": "https://host:99999/?key=hunter2"},
                HTTP | {"id": "r", "url": "hunter2"},
            ]
        )
        | {
            "gateway": {
                "security_schemes": [{"id": "x", "type": "http", "scheme": "bearer", "credential": secret}]
            }
        }
    )
    assert len(found) == 7
    assert not [p for p in found if "hunter2" in str(p)]
    assert "a string of 8 characters" in {p.found for p in found}


@pytest.mark.parametrize(
    ("gateway", "proxy", "clash"),
    [("127.0.0.1", "127.0.0.1", True), ("0.0.0.0", "127.0.0.1", True), ("::1", "127.0.0.1", False)],
)
def test_two_listeners_do_not_share_a_port(gateway: str, proxy: str, clash: bool) -> None:
    mapping = {
        "proxy": {"listen": proxy, "port": 9000},
        "gateway": {"enabled": True, "listen": gateway, "port": 9000},
    }
    if not clash:
        assert parse(mapping).gateway.port == 9000
        return
    assert [p.path for p in problems(mapping)] == ["gateway.port"]


def test_a_listener_that_is_off_stands_in_nobodys_way() -> None:
    gateway = {"enabled": True, "port": 9000}
    assert parse({"proxy": {"mode": "disabled", "port": 9000}, "gateway": gateway}).gateway.port == 9000
    assert parse({"proxy": {"port": 9000}, "gateway": gateway | {"enabled": False}}).proxy.port == 9000


def test_any_free_port_clashes_with_none() -> None:
    mapping = {"proxy": {"port": 0}, "gateway": {"enabled": True, "port": 0}}
    assert parse(mapping).proxy.port == 0


def keys_of(value: Any) -> set[str]:
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set(value if isinstance(value, dict) else ()).union(*map(keys_of, children))


KEYS = st.sampled_from(sorted(keys_of(complete())))
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(
        ["stdio", "http", "https://h/", "*", "a[", "1h", "-1s", "1MiB", "apiKey", "http://[", "x:y@z"]
    )
)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(KEYS | st.text() | st.integers(), inner, max_size=6)
    ),
    max_leaves=30,
)


def subtrees(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    children = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    return [path, *(p for key, child in children for p in subtrees(child, (*path, key)))]


def told(mapping: Any) -> list[str]:
    """Return the problems of a mapping as they are printed; whatever else is raised is the test's failure."""
    try:
        parse(mapping)
    except ConfigError as error:
        return [str(p) for p in error.problems] or ["no problem told"]
    return []


@given(TREES)
def test_any_tree_is_a_config_or_a_list_of_printable_problems(tree: Any) -> None:
    assert all(line.isprintable() and "; expected " in line for line in told(tree))


@given(st.sampled_from(subtrees(complete())), TREES)
def test_the_example_with_any_part_replaced_is_a_config_or_printable_problems(
    path: tuple[Any, ...], tree: Any
) -> None:
    mapping: Any = {"root": complete()}
    *steps, last = ("root", *path)
    place = mapping
    for step in steps:
        place = place[step]
    place[last] = tree
    assert all(line.isprintable() and "; expected " in line for line in told(mapping["root"]))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON))
def test_a_digest_does_not_depend_on_the_order_of_keys(mapping: dict[str, Any]) -> None:
    assert digest(mapping) == digest(dict(reversed(mapping.items())))
    assert len(digest(mapping)) == 64


def test_a_digest_changes_with_any_value() -> None:
    first = complete()
    second = complete()
    second["network"]["resolve"]["grace"] = "6m"
    assert digest(first) != digest(second)


@pytest.mark.parametrize(
    "settings_",
    [{"upstream_security": "k"}, {"passthrough": True}, {"tools": {"pay": {"upstream_security": "k"}}}],
    ids=lambda v: next(iter(v)),
)
def test_a_stdio_server_takes_no_credential_over_http(settings_: dict[str, Any]) -> None:
    scheme = {"id": "k", "type": "http", "scheme": "bearer", "credential": "c"}
    servers = [{"id": "fs", "type": "stdio", "command": "x"}]
    mapping = {
        "sandbox": {"mcp": {"servers": servers}},
        "gateway": {"security_schemes": [scheme], "servers": {"fs": settings_}},
    }
    with pytest.raises(ConfigError) as refused:
        parse(mapping)
    (problem,) = refused.value.problems
    assert problem.path == f"gateway.servers.fs.{next(iter(settings_))}"
    assert "`env`" in problem.expected
