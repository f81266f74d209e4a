"""`run`: the daemon in the foreground. Everything it does is the daemon's business."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource

from agentsh_net.cli.examples import examples
from agentsh_net.cli.file_name import FILE


@click.command(
    epilog=examples(
        "sudo agentsh-net run",
        "sudo agentsh-net run --config policy.yaml --audit",
        "sudo agentsh-net run --config policy.yaml --ready-file /run/agentsh-net/ready",
    )
)
@click.option("--config", type=FILE, help="The policy file; without one the built-in default: audit mode, servers found on the machine.")  # fmt: skip
@click.option("--audit", is_flag=True, help="Judge and record only, whatever the file says.")
@click.option("--enforce", is_flag=True, help="Block what is denied, whatever the file says.")
@click.option("--ready-file", type=FILE, help="Write a JSON object here once the policy is in force.")  # fmt: skip
@click.pass_context
def run(ctx: click.Context, config: Path | None, audit: bool, enforce: bool, ready_file: Path | None) -> None:
    """Run the daemon in the foreground. SIGHUP reloads, SIGTERM drains and stops.

    eBPF programs are pinned in /sys/fs/bpf where that is the host's; AGENTSH_NET_BPFFS names another directory on a bpffs, or none: pin nothing.
    """
    if audit and enforce:
        raise click.UsageError("--audit and --enforce exclude each other")
    from agentsh_net import start

    said = audit if audit or enforce else None
    ctx.exit(start.main(config, audit=said, ready_file=ready_file, socket=_named_socket(ctx)))


def _named_socket(ctx: click.Context) -> Path | None:
    """Return the socket that the command line or the environment names; the file decides where neither does."""
    root = ctx.find_root()
    named = root.get_parameter_source("socket") is not ParameterSource.DEFAULT
    return root.params["socket"].absolute() if named else None
