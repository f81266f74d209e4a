"""`version` and `completion`: what the program says of itself."""

from __future__ import annotations

import click

from agentsh_net import __version__
from agentsh_net.cli.examples import examples


@click.command()
def version() -> None:
    """Print the version."""
    click.echo(f"agentsh-net {__version__}")


@click.command(
    epilog=examples(
        "agentsh-net completion bash > /etc/bash_completion.d/agentsh-net",
        "agentsh-net completion zsh > /usr/local/share/zsh/site-functions/_agentsh-net",
        "agentsh-net completion fish > ~/.config/fish/completions/agentsh-net.fish",
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a shell."""
    from click.shell_completion import get_completion_class

    script = get_completion_class(shell)
    if script is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(script(ctx.find_root().command, {}, "agentsh-net", "_AGENTSH_NET_COMPLETE").source())
