"""The configuration as data: one frozen dataclass per YAML mapping, attribute names equal to the YAML keys.

Durations are seconds, sizes are bytes. `core.configuration.config` makes these from a mapping; nothing here validates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network
from typing import Any

from agentsh_net.core.model import Server
from agentsh_net.core.web.aws_signature import Credentials


@dataclass(frozen=True, slots=True)
class ServerRule:
    """A rule over servers: a glob over ids. `path` is where it stands in the file."""

    id: str = "*"
    path: str = ""


@dataclass(frozen=True, slots=True)
class ArgumentMatch:
    """One condition on the arguments of a call: what `path` (core.values.json_path) selects, and what it is compared with."""

    path: str
    kind: str  # equals | in | glob | regex
    value: Any = None  # a scalar, a tuple of scalars (in), or the pattern


@dataclass(frozen=True, slots=True)
class ToolRule:
    """A rule over tools: globs over server id and tool name; `content_hash` narrows it to one version of the tool.

    `args` narrows it to calls with such arguments: all conditions must hold.
    """

    server: str = "*"
    tool: str = "*"
    content_hash: str = ""
    path: str = ""
    args: tuple[ArgumentMatch, ...] = ()


@dataclass(frozen=True, slots=True)
class VersionPinning:
    """What happens when a tool's definition is new or changed."""

    enabled: bool = True
    on_change: str = "block"  # block | alert | allow
    auto_trust_first: bool = True


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A token bucket: calls a minute, and how many may come at once."""

    calls_per_minute: float = 60
    burst: int = 10


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Token buckets per server."""

    enabled: bool = False
    default_rpm: float = 60
    default_burst: int = 10
    per_server: Mapping[str, RateLimit] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CustomPattern:
    """A detector of the operator's own."""

    name: str
    regex: str
    display: str = ""
    severity: str = "high"


@dataclass(frozen=True, slots=True)
class Inspection:
    """Definitions at or above `block_severity` block."""

    block_severity: str = "critical"
    custom_patterns: tuple[CustomPattern, ...] = ()


@dataclass(frozen=True, slots=True)
class OutputInspection:
    """What happens when a result trips a detector."""

    enabled: bool = False
    on_detection: str = "alert"  # allow | alert | block


@dataclass(frozen=True, slots=True)
class ServerAsks:
    """Policy over what servers ask of clients (sampling, elicitation); a section without `policy` blocks."""

    policy: str = "block"  # block | alert | allow
    per_server: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Burst:
    """So many calls in so many seconds."""

    calls: int = 10
    window: float = 5.0


@dataclass(frozen=True, slots=True)
class CrossServer:
    """Session rules over several servers."""

    enabled: bool = False
    read_then_send_window: float = 30.0
    burst: Burst = Burst()
    same_turn_only: bool = True


@dataclass(frozen=True, slots=True)
class Mcp:
    """`sandbox.mcp`: the servers and the policy over them."""

    enforce_policy: bool = True
    fail_closed: bool = False
    block_mode: str = "replace"  # replace | steer
    hide_denied: bool = False  # take denied tools out of what requests offer
    native_tools: tuple[str, ...] = ()
    servers: tuple[Server, ...] = ()
    server_policy: str = "none"  # allowlist | denylist | none
    allowed_servers: tuple[ServerRule, ...] = ()
    denied_servers: tuple[ServerRule, ...] = ()
    tool_policy: str = "none"
    allowed_tools: tuple[ToolRule, ...] = ()
    denied_tools: tuple[ToolRule, ...] = ()
    version_pinning: VersionPinning = VersionPinning()
    rate_limits: RateLimits = RateLimits()
    inspection: Inspection = Inspection()
    output_inspection: OutputInspection = OutputInspection()
    # Without a section a server's requests pass and are told of: who wraps a server must not change what it does.
    sampling: ServerAsks = ServerAsks("alert")
    elicitation: ServerAsks = ServerAsks("alert")
    cross_server: CrossServer = CrossServer()


@dataclass(frozen=True, slots=True)
class Sandbox:
    """`sandbox`: holds `mcp`."""

    mcp: Mcp = Mcp()


@dataclass(frozen=True, slots=True)
class ProviderLimits:
    """What may be asked of a provider in a minute, by all agents together; 0 is no limit."""

    requests_per_minute: float = 0
    tokens_per_minute: float = 0


NO_CREDENTIALS = Credentials()


@dataclass(frozen=True, slots=True)
class Provider:
    """An LLM provider the proxy forwards to. `base_url` keeps its path."""

    name: str
    dialect: str  # anthropic | openai | gemini | ollama | bedrock
    base_url: str
    limits: ProviderLimits = ProviderLimits()
    aws: Credentials = NO_CREDENTIALS  # of the proxy, for the bedrock dialect


DEFAULT_PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider("anthropic", "anthropic", "https://api.anthropic.com"),
    "openai": Provider("openai", "openai", "https://api.openai.com/v1"),
    "gemini": Provider("gemini", "gemini", "https://generativelanguage.googleapis.com"),
    "ollama": Provider("ollama", "ollama", "http://127.0.0.1:11434"),
}


@dataclass(frozen=True, slots=True)
class Proxy:
    """`proxy`: the LLM proxy."""

    mode: str = "embedded"  # embedded | mcp-only | disabled
    listen: str = "127.0.0.1"
    port: int = 8484
    workers: int = 1
    max_frame: int = 1 << 20
    max_request: int = 64 << 20  # a request body; agents send whole conversations with images
    max_body: int = 32 << 20  # a JSON answer that has to be read whole
    websockets: str = "refuse"  # refuse | inspect
    connect_timeout: float = 10.0
    idle_timeout: float = 600.0  # silence of the upstream inside an answer
    providers: Mapping[str, Provider] = field(default_factory=lambda: DEFAULT_PROVIDERS)


@dataclass(frozen=True, slots=True)
class Dlp:
    """`dlp`: redaction of request bodies; `patterns` switches built-in ones off (all are on)."""

    mode: str = "disabled"  # redact | tokenize | disabled
    patterns: Mapping[str, bool] = field(default_factory=dict)
    custom_patterns: tuple[CustomPattern, ...] = ()


@dataclass(frozen=True, slots=True)
class Retention:
    """How long and how much is kept."""

    max_age_days: float = 90
    max_size_mb: float = 1000


@dataclass(frozen=True, slots=True)
class LlmStorage:
    """`llm_storage`: requests and bodies kept on disk."""

    store_bodies: bool = False
    retention: Retention = Retention(30, 500)


@dataclass(frozen=True, slots=True)
class SecurityScheme:
    """A credential the gateway checks or adds; `credential` is a secret and never printed."""

    id: str
    type: str  # http | apiKey
    credential: str = field(repr=False)
    scheme: str = ""  # basic | bearer
    location: str = ""  # header | query (YAML key `in`)
    name: str = ""


@dataclass(frozen=True, slots=True)
class GatewayTool:
    """Per-tool settings of a gateway server."""

    upstream_security: str = ""


@dataclass(frozen=True, slots=True)
class GatewayServer:
    """Per-server settings of the gateway."""

    timeout: float = 60.0
    downstream_security: str = ""
    upstream_security: str = ""
    passthrough: bool = False
    allow_tools: tuple[str, ...] = ()
    hide_denied: bool = False  # leave tools whose calls policy blocks out of tools/list
    user: str = ""  # who a stdio server runs as; needed where the daemon is root
    tools: Mapping[str, GatewayTool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Gateway:
    """`gateway`: the MCP gateway."""

    enabled: bool = False
    listen: str = "127.0.0.1"
    port: int = 8485
    max_request: int = 4 << 20
    max_response: int = 100 << 20
    blocked_as: str = "error"  # error | result: how a client gets a blocked call
    allowed_origins: tuple[str, ...] = ()
    security_schemes: tuple[SecurityScheme, ...] = ()
    servers: Mapping[str, GatewayServer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Resolve:
    """`network.resolve`: names to addresses."""

    min_ttl: float = 5.0
    max_ttl: float = 3600.0
    grace: float = 300.0
    snoop_dns: bool = False
    stub: bool = False
    stub_listen: str = "127.0.0.55"  # beside systemd-resolved's 127.0.0.53 and .54
    stub_port: int = 53
    # Name servers for our own questions and the stub's, instead of resolv.conf's.
    upstream: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Destination:
    """Where sessions may connect: a name, an address, or (`network`) a prefix; port 0 is every port."""

    host: str
    port: int = 0
    network: IPv4Network | IPv6Network | None = None


@dataclass(frozen=True, slots=True)
class Egress:
    """`network.egress`: what sessions may connect to besides allowed servers, where that is not everything."""

    sessions: str = "open"  # open | tag | refuse
    allow: tuple[Destination, ...] = ()


@dataclass(frozen=True, slots=True)
class Network:
    """`network`: the kernel planes. `mark` (0: none), in the bits of `mark_mask`, is given to a tagged server's connections."""

    mode: str = "tag"  # off | tag | enforce
    required: bool = False
    layers: tuple[str, ...] = ("ebpf", "nftables")
    scope: str = "host"  # host | sessions | netns
    llm_direct: str = "off"  # off | tag | refuse
    on_exit: str = "remove"  # remove | keep
    on_crash: str = "keep"
    on_shared_address: str = "block"  # sni | block | tag
    on_unknown_sni: str = "block"  # block | tag: at a shared address, whatever shows no server name
    bpf_loader: str = "auto"  # auto | prebuilt | bcc
    mark: int = 0
    mark_mask: int = 0x00FF0000
    nflog_group: int = 4848
    resolve: Resolve = Resolve()
    egress: Egress = Egress()


@dataclass(frozen=True, slots=True)
class Store:
    """`store`: the audit trail."""

    path: str = "/var/lib/agentsh-net/events.db"
    retention: Retention = Retention()


@dataclass(frozen=True, slots=True)
class Metrics:
    """`metrics`: Prometheus text and health; off while `listen` is empty, which it is without the section."""

    listen: str = ""
    port: int = 9484


@dataclass(frozen=True, slots=True)
class Log:
    """`log`: what the daemon prints to standard error."""

    format: str = "text"  # text | json
    level: str = "info"


@dataclass(frozen=True, slots=True)
class Control:
    """`control`: the Unix socket of the CLI."""

    socket: str = "/run/agentsh-net/control.sock"


@dataclass(frozen=True, slots=True)
class Config:
    """The whole file."""

    version: int = 1
    sandbox: Sandbox = Sandbox()
    proxy: Proxy = Proxy()
    dlp: Dlp = Dlp()
    llm_storage: LlmStorage = LlmStorage()
    gateway: Gateway = Gateway()
    network: Network = Network()
    store: Store = Store()
    metrics: Metrics = Metrics()
    log: Log = Log()
    control: Control = Control()
