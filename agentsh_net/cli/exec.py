"""`exec`: run an agent in a session of its own. The daemon moves this very process, which then becomes the agent.

So exit status, signals and terminal are the agent's own, and nothing of ours stands in between or has to be alive.
"""

from __future__ import annotations

import os

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.failures import Exit, Failure
from agentsh_net.cli.main import Daemon
from agentsh_net.core.naming.folding import visible

_NOT_FOUND, _NOT_EXECUTABLE = 127, 126  # as env(1) says it


@click.command(
    name="exec",
    short_help="Run an agent in a session of its own.",
    context_settings={"ignore_unknown_options": False},
    epilog=examples(
        "sudo agentsh-net exec -- claude",
        "sudo agentsh-net exec --as alice --session nightly -- codex exec 'mend the tests'",
    ),
)
@click.option("--session", "session_id", help="The session's name in events; without one it is made.")
@click.option(
    "--as",
    "user",
    default="",
    metavar="USER",
    help="Whom the agent runs as. [default: you; by sudo, whoever called it]",
)
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def run_agent(daemon: Daemon, session_id: str | None, user: str, command: tuple[str, ...]) -> None:
    """Run an agent in a session of its own: agentsh-net exec -- COMMAND...

    It gets a cgroup, so that what it connects to is told and policed as its session's; the variables that point it at the
    LLM proxy; and no way to gain privileges (sudo and setuid do not work in it). Exit status and signals are the agent's.
    """
    from agentsh_net import agent_privileges
    from agentsh_net.core.agent_environment import agent_environment, replaced

    account = agent_privileges.account(user, os.environ, os.geteuid())
    told = daemon.client().call("session.exec", session_id=session_id)
    for warning in told["warnings"]:
        _warn(warning)
    for name in replaced(os.environ, told["env"]):
        _warn(f"{name} was set; the agent now goes through the proxy, and to where proxy.providers says")
    if account is not None and account.uid == 0:
        _warn(
            "the agent runs as root: without capabilities, but able to leave its session and to stop the daemon"
            + ("" if user else "; better name a user: --as USER")
        )
    try:
        for number in agent_privileges.close_internet_sockets():
            _warn(f"descriptor {number} is closed: an internet socket that was made outside of the session")
        agent_privileges.give_up(account)
    except OSError as error:
        raise Failure(
            f"the agent cannot be confined, so it is not started: {error}",
            code=Exit.ENVIRONMENT,
            remedy="run exec with CAP_SETPCAP, CAP_SETUID and CAP_SETGID, or as the agent's own user",
        ) from error
    environ = agent_environment(os.environ, told["env"], account)
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606 - the command is the caller's own
    except FileNotFoundError:
        raise _unstarted(command[0], "not found", _NOT_FOUND) from None
    except OSError as error:
        raise _unstarted(command[0], error.strerror or str(error), _NOT_EXECUTABLE) from error


def _unstarted(command: str, why: str, code: int) -> Failure:
    failure = Failure(f"{command}: {why}", code=Exit.USAGE)
    failure.exit_code = code  # type: ignore[misc] # click declares it per class and reads it per instance
    return failure


def _warn(text: str) -> None:
    click.echo(f"agentsh-net: {visible(text)}", err=True)
