"""`demo`: attacks on a scripted agent, really played, without enforcement and with it, and a table of what stopped them.

The play itself is `agentsh_net.demo`'s, in a process and namespaces of its own; here it is started, watched and printed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.output import Column, Row, json_text, table
from agentsh_net.core.naming.folding import visible

_PLAY: Final = "agentsh_net.demo.play"
_SDKS: Final = ("mcp.server.mcpserver", "anthropic")

# 80 columns wide; the events, with names and ids of their own width, stand below.
_COLUMNS: Final = (
    Column("#", lambda row: str(row["number"])),
    Column("ATTACK", lambda row: str(row["title"]), fold=True),
    Column("WITHOUT", lambda row: str(row["without"]), fold=True),
    Column("WITH", lambda row: str(row["with"])),
    Column("STOPPED BY", lambda row: str(row["layer"])),
)


@click.command(
    short_help="Attack a scripted agent, without enforcement and with it.",
    epilog=examples("sudo agentsh-net demo", "sudo agentsh-net demo --json --keep /tmp/demo"),
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option(
    "--keep", type=click.Path(path_type=Path, exists=False), metavar="DIR",
    help="Make this directory, and leave the audit trail, the policies and the logs in it.",
)  # fmt: skip
def demo(as_json: bool, keep: Path | None) -> None:
    """Attack a scripted agent, without enforcement and with it, and say what stopped each attack.

    Real MCP servers, an agent on the official SDKs, a scripted model, and this very daemon, in a cgroup and namespaces of
    their own: nothing of the machine is attached to, filtered or connected to. Needs root and the extra `demo`. Exit code 0
    only if every attack works without enforcement and is stopped with it, as expected.
    """
    _require()
    rows: list[Row] = []
    seconds = 0.0
    with _folder(keep) as folder:
        for told in _played(folder):
            match told:
                case {"say": text}:
                    click.echo(visible(text), err=True)
                case {"seconds": taken}:
                    seconds = taken
                case {"outcome": row}:
                    rows.append(row)
                case {"error": text, "code": code, "remedy": remedy}:
                    raise Failure(text, code=Exit(code), remedy=remedy)
    held = sum(bool(row["as_expected"]) for row in rows)
    if as_json:
        click.echo(json_text({"scenarios": rows, "as_expected": held, "seconds": seconds}))
    else:
        _print(rows, f"{held} of {len(rows)}", seconds, keep)
    if not rows or held < len(rows):
        raise SystemExit(Exit.DENIED)


def _print(rows: list[Row], held: str, seconds: float, keep: Path | None) -> None:
    click.echo(f"\n{table(rows, _COLUMNS)}")
    for row in rows:
        if row["event_id"]:
            click.echo(visible(f"{row['number']}  {row['event_type']} {row['event_id']}"))
            click.echo(visible(f"   {row['reason']}"))
    honest = sum(int(row["honest"]) for row in rows)
    click.echo(
        f"\n{held} attacks worked without enforcement and were stopped with it, in {seconds:g} s;"
        f" {honest} honest calls of the same agents went through."
    )
    if keep is not None:
        database = visible(str(keep / "events.db"))
        stored = f"--direct-db --db {database}"
        click.echo(f"Look closer: agentsh-net mcp events --session enforced {stored}")
        for row in rows[:1]:
            click.echo(f"             agentsh-net mcp calls --show {row['event_id'] or 'ID'} {stored}")


def _require() -> None:
    """Say what is missing here. Raises Failure."""
    if os.geteuid() != 0:
        raise Failure(
            "the demonstration makes namespaces and loads eBPF in them: it needs root",
            code=Exit.ENVIRONMENT, remedy="sudo agentsh-net demo",
        )  # fmt: skip
    missing = [name.partition(".")[0] for name in _SDKS if not _importable(name)]
    if missing:
        raise Failure(
            f"its servers and its agent run on the official SDKs; missing here, or too old: {', '.join(missing)}",
            code=Exit.ENVIRONMENT, remedy=f'{sys.executable} -m pip install "agentsh-net[demo]"',
        )  # fmt: skip
    if shutil.which("ip") is None:
        raise Failure("the command `ip` is missing", code=Exit.ENVIRONMENT, remedy="apt install iproute2")


def _importable(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Yield the folder that the demonstration works in; others may pass through it, and read nothing but what is theirs."""
    if keep is not None:
        try:
            keep.mkdir(mode=0o700)
        except OSError as error:
            raise Failure(
                f"cannot make {keep}: {error.strerror}", code=Exit.USAGE, remedy="name a new directory"
            ) from error
    with tempfile.TemporaryDirectory(prefix="agentsh-net-demo-") as made:
        Path(made).chmod(0o711)
        try:
            yield Path(made)
        finally:
            if keep is not None:
                shutil.copytree(made, keep, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.sock*"))
                keep.chmod(0o700)


def _played(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what the play tells, a row at a time; when this ends, nothing of it runs any more."""
    from agentsh_net.demo.box import corner

    # So that the corner is cleared away.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with corner() as cgroup:
        command = [sys.executable, "-m", _PLAY, str(cgroup), str(folder)]
        with (folder / "play.log").open("ab") as log:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        ended = False
        try:
            for line in process.stdout or ():
                yield json.loads(line)
            ended = True
        finally:
            if not ended:
                process.terminate()
            code = process.wait()
        if code:
            raise Failure(
                f"the play ended early (status {code})",
                code=Exit.DENIED,
                remedy="look at play.log with --keep DIR",
            )
