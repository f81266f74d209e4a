"""`policy suggest`: a policy file made of what was observed, on standard output or in a file; it changes nothing by itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.file_name import FILE
from agentsh_net.cli.output import Format, json_text
from agentsh_net.cli.source import Source, reading
from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError
from agentsh_net.core.naming.folding import visible

_EVERYTHING = 1_000_000  # events; what is older than that is another policy's


@click.command(
    short_help="Suggest a policy from what was observed.",
    epilog=examples(
        "agentsh-net policy suggest --session s-3f9c01d2ab44 --out suggested.yaml",
        "agentsh-net policy suggest --since 7d --base policy.yaml",
    ),
)
@click.option("--base", type=FILE, help="The policy file to begin from; without it the daemon's own, or what `init` would write.")  # fmt: skip
@click.option(
    "--out",
    type=FILE,
    help="Write it to a new file instead of printing it.",
)
@reading("session", "since", limit=None, json="The policy as one JSON object.")
def suggest(
    source: Source, filters: Mapping[str, Any], form: Format, base: Path | None, out: Path | None
) -> None:
    """Suggest a policy: what was used is allowed, what was detected denied, pins on. `policy check` accepts it."""
    from agentsh_net.core.audit import suggestion
    from agentsh_net.core.configuration import config as core_config

    wanted = {**filters, "limit": _EVERYTHING}
    seen = suggestion.observe(_events(source, wanted), source.rows("tools", {"limit": _EVERYTHING}))
    beginning, where = _beginning(source, base)
    made = suggestion.policy(beginning, seen)
    if not made["sandbox"]["mcp"]["allowed_tools"]:
        click.echo(
            "note: no call was observed that this policy may allow: it denies every tool of every server",
            err=True,
        )
    if form is not Format.TABLE:
        click.echo(json_text(made))
        return
    text = rendered(made, where, suggestion.notes(seen))
    try:
        core_config.parse(made)
    except ConfigError as error:  # values behind ${...} are only known where the daemon runs
        for problem in error.problems:
            click.echo(f"policy check may say: {visible(str(problem))}", err=True)
    if out is None:
        click.echo(text, nl=False)
    else:
        _write(out, text)


def rendered(policy: Mapping[str, Any], where: str, notes: Iterator[str]) -> str:
    """Return the file's text: why each thing is there, then the policy."""
    import yaml

    head = [f"Suggested by agentsh-net policy suggest, from {where} and what was observed.", *notes]
    head += ["Read it, then: agentsh-net policy check FILE"]
    comments = "".join(f"# {visible(line, 300)}\n" for line in head)
    return comments + yaml.safe_dump(dict(policy), sort_keys=False, allow_unicode=False, width=120)


def _events(source: Source, filters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from source.rows("calls", filters)
    for kind in ("mcp_tool_result_inspected", "mcp_cross_server_blocked"):
        yield from source.rows("events", {**filters, "type": kind})


def _beginning(source: Source, base: Path | None) -> tuple[Mapping[str, Any], str]:
    """Return the policy to begin from, with its references (`${...}`) as they stand, and where it came from."""
    if base is None and source.database is None:
        try:
            path = source.call("status")["policy"]["path"]
        except ControlError as error:
            if error.kind == "unreachable":
                raise
            path = None
        base = Path(path) if path else None
    if base is not None:
        return _read(base), str(base)
    return _declared(), "the servers of this user's MCP clients"


def _read(path: Path) -> Mapping[str, Any]:
    from agentsh_net.config import policy_file, strict_yaml

    try:
        text, _ = policy_file.read_text(path, policy_file.MAX_FILE)
        value = strict_yaml.read(text).value
    except ConfigError as error:
        raise Failure(str(error), code=Exit.USAGE, remedy="name another file with --base") from error
    if not isinstance(value, dict):
        raise Failure(f"{path} is no policy", code=Exit.USAGE, remedy="name another file with --base")
    return value


def _declared() -> Mapping[str, Any]:
    from agentsh_net.config import first_policy, options, policy_file, strict_yaml
    from agentsh_net.mcp_clients import declarations

    home = options.home(os.environ)
    found = declarations.find(home, cwd=Path.cwd(), config_home=policy_file.config_home(os.environ, home))
    value: Mapping[str, Any] = strict_yaml.read(first_policy.text(found.servers)).value
    return value


def _write(out: Path, text: str) -> None:
    """Write a new file; it may hold credentials: mode 0600."""
    try:
        descriptor = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Failure(
            f"cannot write {out}: {error.strerror}", code=Exit.USAGE, remedy="name another file"
        ) from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    click.echo(f"wrote {visible(str(out))}; look at it, then: agentsh-net policy check {visible(str(out))}")
