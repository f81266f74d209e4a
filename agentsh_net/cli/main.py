"""The command line's door: the table of commands, the options of all of them, and errors turned into exit codes.

Not its business: what a command does (a file each) and how rows are printed (`output`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from agentsh_net import __version__, places
from agentsh_net.cli import streams
from agentsh_net.cli.failures import Exit, Failure, failure
from agentsh_net.cli.file_name import FILE
from agentsh_net.cli.lazy import LazyGroup
from agentsh_net.control.errors import ControlError
from agentsh_net.core.errors import ConfigError, KernelError, ProtocolError, StoreError

if TYPE_CHECKING:
    from agentsh_net.control.client import Client

COMMANDS: Final = {
    "run": "agentsh_net.cli.run:run",
    "exec": "agentsh_net.cli.exec:run_agent",
    "init": "agentsh_net.cli.init:init",
    "status": "agentsh_net.cli.status:status",
    "reload": "agentsh_net.cli.lifecycle:reload",
    "down": "agentsh_net.cli.lifecycle:down",
    "doctor": "agentsh_net.cli.doctor:doctor",
    "demo": "agentsh_net.cli.demo:demo",
    "tail": "agentsh_net.cli.tail:tail",
    "watch": "agentsh_net.cli.watch:watch",
    "mcp": "agentsh_net.cli.mcp:mcp",
    "llm": "agentsh_net.cli.llm:llm",
    "policy": "agentsh_net.cli.policy:policy",
    "session": "agentsh_net.cli.session:session",
    "shim": "agentsh_net.cli.shim_command:shim",
    "version": "agentsh_net.cli.about:version",
    "completion": "agentsh_net.cli.about:completion",
}


@dataclass(frozen=True, slots=True)
class Daemon:
    """Where the daemon is to be found."""

    socket: Path

    def client(self, timeout: float | None = None) -> Client:
        """Return a client of it; nothing is sent before the first call."""
        from agentsh_net.control.client import TIMEOUT, Client

        return Client(self.socket, TIMEOUT if timeout is None else timeout)


class _Root(LazyGroup):
    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Read the options of all commands; `--help` and `--version` print in here."""
        with _output_errors():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; our errors leave as one line, a remedy, and an exit code."""
        try:
            with _output_errors():
                return super().invoke(ctx)
        except (ConfigError, ControlError, KernelError, ProtocolError, StoreError) as error:
            raise failure(error) from error
        except click.NoSuchOption as error:
            if error.option_name != "--socket":
                raise
            told = (
                f"--socket stands before the command: agentsh-net --socket FILE {ctx.invoked_subcommand} ..."
            )
            raise click.UsageError(told, error.ctx) from error
        except FileNotFoundError as error:
            if not _nowhere():
                raise
            told = "the directory that this shell is in is gone"
            raise Failure(told, code=Exit.ENVIRONMENT, remedy="cd somewhere else") from error
        except KeyboardInterrupt:
            ctx.exit(Exit.INTERRUPTED)


def _nowhere() -> bool:
    """Say whether the current directory was removed."""
    try:
        os.getcwd()  # noqa: PTH109 - what `Path.cwd` asks, and this file imports no more than it has to
    except FileNotFoundError:
        return True
    return False


@contextmanager
def _output_errors() -> Iterator[None]:
    """Turn an output that takes no more into an exit code, or a failure that says so."""
    try:
        yield
    except OSError as error:
        if not streams.of_output(error):
            raise
        match streams.ended(error):
            case int(code):
                raise click.exceptions.Exit(code) from error
            case told:
                raise told from error


@click.group(
    cls=_Root,
    lazy=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 ok, 1 a check failed or something is denied, 2 usage or configuration, 3 the environment lacks something, 4 daemon not reachable; "
    "130 after Ctrl-C, 141 where nobody reads the output any more.",
)
@click.option(
    "--socket",
    type=FILE,
    default=lambda: places.socket_to_ask(os.environ, os.geteuid()),
    show_default=f"{places.SYSTEM_SOCKET}, or a user's own",
    envvar="AGENTSH_NET_SOCKET",
    show_envvar=True,
    help="The daemon's control socket.",
)
@click.version_option(__version__, message="agentsh-net %(version)s", help="Show the version and exit.")
@click.pass_context
def cli(ctx: click.Context, socket: Path) -> None:
    """See and stop the MCP tool calls of AI agents."""
    ctx.obj = Daemon(socket)


def main() -> None:
    """Run the command line and exit."""
    streams.prepare()
    cli(prog_name="agentsh-net")
