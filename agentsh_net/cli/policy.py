"""`policy check` and `policy explain`: what a file would do, and how a verdict comes about. Neither changes anything."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.file_name import FILE
from agentsh_net.cli.lazy import LazyGroup
from agentsh_net.cli.main import Daemon
from agentsh_net.cli.output import json_text
from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError, Problem
from agentsh_net.core.naming.folding import visible

if TYPE_CHECKING:
    from agentsh_net.config.policy_file import Loaded
    from agentsh_net.core.configuration.settings import Config, Network


@click.group(cls=LazyGroup, lazy={"suggest": "agentsh_net.cli.suggest:suggest"})
def policy() -> None:
    """Check a policy file, explain a verdict, suggest a policy."""


@policy.command(
    short_help="Tell every problem of a file, or what it would do.",
    epilog=examples(
        "agentsh-net policy check policy.yaml",
        "agentsh-net policy check policy.yaml --json",
        "helm template . | agentsh-net policy check -",
    ),
)
@click.argument("file", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="One JSON object: ok, digest, notes, and the problems with their lines.")  # fmt: skip
@click.pass_context
def check(ctx: click.Context, file: Path, as_json: bool) -> None:
    """Read FILE (- for standard input) as the daemon would; tell every problem, or what the policy would do."""
    loaded, problems = _checked(file)
    if as_json:
        click.echo(json_text(_as_json(file, loaded, problems)))
    else:
        notes = (f"note: {note}" for note in loaded.notes) if loaded else ()
        told = [problem.within(str(file)) for problem in problems]
        for line in (*told, *(summary(loaded.config) if loaded else ()), *notes):
            click.echo(visible(line))
    if loaded is None:
        ctx.exit(Exit.USAGE)


@policy.command(
    epilog=examples(
        "agentsh-net policy explain --tool mcp__weather__delete_city",
        """agentsh-net policy explain --server fs --tool write --args '{"path": "/etc/passwd"}'""",
        "agentsh-net policy explain --config policy.yaml --server weather --tool get_city",
    )
)
@click.option("--tool", required=True, help="The tool, as the model writes it or as the server calls it.")
@click.option("--server", help="The server, where the name alone does not say it.")
@click.option("--args", "arguments", default="{}", show_default=True, help="The call's arguments, as JSON.")
@click.option("--config", type=FILE, help="Judge by this file instead of asking the daemon; the server is taken to offer the tool.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="The reasoning as one JSON object.")
@click.pass_context
def explain(
    ctx: click.Context, tool: str, server: str | None, arguments: str, config: Path | None, as_json: bool
) -> None:
    """Print the steps that lead to the verdict on a call. Exit code 1 if it is, or in audit mode would be, blocked."""
    given = _parsed(arguments)
    if config is not None:
        explanation = _explained_by(config, tool, server or "", given)
    else:
        explanation = _explained_by_daemon(ctx.obj, tool, server, given)
    if as_json:
        click.echo(json_text(explanation))
    else:
        for line in trace(explanation):
            click.echo(line)
    verdict = explanation["verdict"]
    if "block" in {verdict["action"], verdict.get("would")}:
        ctx.exit(Exit.DENIED)


def trace(explanation: Mapping[str, Any]) -> list[str]:
    """Return the lines that tell of an explanation: a step each, the verdict (allow or block) last."""
    verdict = explanation["verdict"]
    decided = "block" if "block" in {verdict["action"], verdict.get("would")} else "allow"
    lines = []
    for step in explanation["steps"]:
        rule = f"  [{step['rule']}]" if step.get("rule") else ""
        name, outcome = ("VERDICT", decided) if step["step"] == "verdict" else (step["step"], step["outcome"])
        lines.append(visible(f"{name:<11}  {outcome:<5}  {step['reason']}{rule}"))
    if verdict.get("would") == "block":
        lines.append("audit mode: the call passes all the same (sandbox.mcp.enforce_policy is false)")
    return lines


def summary(config: Config) -> list[str]:
    """Return what a configuration would do, in a few lines."""
    from agentsh_net.core.verdicts.rules import Rules

    mcp, network, proxy = config.sandbox.mcp, config.network, config.proxy
    mode = "enforce" if mcp.enforce_policy else "audit (everything is judged, nothing is blocked)"
    rules = Rules(mcp)
    servers = _ruled(
        len(mcp.allowed_servers), len(mcp.denied_servers), mcp.server_policy, every=rules.other_servers
    )
    tools = _ruled(len(mcp.allowed_tools), len(mcp.denied_tools), mcp.tool_policy, every=rules.other_tools)
    pinning = mcp.version_pinning
    lines = [
        "ok",
        f"mode:     {mode}{', fail_closed' if mcp.fail_closed else ''}",
        f"servers:  {len(mcp.servers)} declared ({', '.join(s.id for s in mcp.servers) or 'none'}); {servers}",
        f"tools:    {tools}",
        f"pinning:  {f'on, on_change: {pinning.on_change}' if pinning.enabled else 'off'}",
        f"rates:    {'on' if mcp.rate_limits.enabled else 'off'}",
        f"network:  {_network(network)}",
    ]
    if network.egress.sessions != "open":
        lines.append(f"egress:   sessions: {network.egress.sessions}, {len(network.egress.allow)} allowed")
    if proxy.mode == "disabled":
        lines.append("proxy:    disabled")
    else:
        providers = ", ".join(sorted(proxy.providers))
        lines.append(f"proxy:    {proxy.mode} at {_place(proxy.listen)}:{proxy.port} ({providers})")
        stored = "requests and answers stored" if config.llm_storage.store_bodies else "nothing stored"
        lines.append(f"data:     DLP {config.dlp.mode}, {stored}")
    if config.gateway.enabled:
        lines.append(f"gateway:  at {_place(config.gateway.listen)}:{config.gateway.port}")
    if config.metrics.listen:
        lines.append(f"metrics:  at {_place(config.metrics.listen)}:{config.metrics.port}")
    return lines


def _ruled(allowed: int, denied: int, policy: str, *, every: object) -> str:
    """Return how many rules allow and deny, and what becomes of what none of them names; `every`: a rule denies all of that."""
    others = "are denied" if policy == "allowlist" or every is not None else "pass"
    return f"rules allow {allowed} and deny {denied}, others {others}"


def _network(network: Network) -> str:
    if network.mode == "off":
        return "off"
    return f"{network.mode}{', required' if network.required else ''} ({', '.join(network.layers) or 'no layers'})"


def _checked(file: Path) -> tuple[Loaded | None, tuple[Problem, ...]]:
    """Return what a file says, or all that is wrong with it."""
    try:
        return _loaded(file), ()
    except ConfigError as error:
        return None, error.problems


def _as_json(file: Path, loaded: Loaded | None, problems: Sequence[Problem]) -> dict[str, Any]:
    """Return what `--json` prints, which editors and pipelines read. `line` is 0 where a problem is of the whole file."""
    return {
        "file": str(file),
        "ok": loaded is not None,
        "digest": loaded.digest if loaded else "",  # of what is in force `status` has it
        "problems": [asdict(problem) for problem in problems],
        "notes": list(loaded.notes) if loaded else [],
    }


def _place(listen: str) -> str:
    return f"[{listen}]" if ":" in listen else listen


def _parsed(arguments: str) -> Any:
    from agentsh_net.core.values import jsontext

    try:
        return jsontext.loads(arguments)
    except ValueError as error:
        raise Failure(
            f"--args is not JSON: {error}", code=Exit.USAGE, remedy="""--args '{"path": "/etc/hosts"}'"""
        ) from None


def _loaded(file: Path) -> Loaded:
    from agentsh_net.config import policy_file

    return policy_file.load(Path("/dev/stdin") if str(file) == "-" else file, os.environ, pipe=True)


def _explained_by_daemon(daemon: Daemon, tool: str, server: str | None, arguments: Any) -> Mapping[str, Any]:
    """Return the explanation by the policy in force. Raises ControlError that names --config where there is no daemon."""
    try:
        told: Mapping[str, Any] = daemon.client().call("explain", tool=tool, server=server, args=arguments)
    except ControlError as error:
        if error.kind != "unreachable":
            raise
        remedy = f"{error.remedy}; or judge by a file without it: --config FILE"
        raise ControlError(str(error), kind=error.kind, remedy=remedy) from error
    return told


def _explained_by(path: Path, tool: str, server: str, arguments: Any) -> Mapping[str, Any]:
    """Return the explanation by a file alone: nothing was seen yet, so a server that is named is taken to offer the tool."""
    from agentsh_net.core.model import ToolCall
    from agentsh_net.core.registry import Registry
    from agentsh_net.core.snapshot import Snapshot, explain
    from agentsh_net.core.trust import pins

    loaded = _loaded(path)
    registry = Registry(loaded.config.sandbox.mcp.servers)
    if server:
        if registry.server(server) is None:  # a slip would find nothing that denies it
            click.echo(visible(f"note: {path} declares no server {server!r}"), err=True)
        registry, _ = registry.register(server, [pins.tool_of(server, {"name": tool})])
    snapshot = Snapshot(0, loaded.digest, loaded.config, registry, pins.Pins(), loaded.mapping)
    return asdict(explain(snapshot, ToolCall(tool, server_name=server, input=arguments)))
