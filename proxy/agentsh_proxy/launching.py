"""How a process that the supervisor starts begins: its arguments, its log, and its confinement before anything else.

What such a process does is not its business.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from typing import Final

from agentsh_net.log import Unwaiting
from agentsh_proxy.confinement import confine

EXIT_UNCONFINED: Final = 3

log = logging.getLogger("agentsh_proxy")


def arguments(prog: str) -> argparse.ArgumentParser:
    """Return a parser of what every such process is told: the link, whom to become, who the supervisor is."""
    parser = argparse.ArgumentParser(
        prog=prog, description="started by agentsh-net's supervisor, by nobody else"
    )
    parser.add_argument("--link-fd", type=int, required=True, help="messages with the supervisor")
    parser.add_argument("--uid", type=int, default=65534)
    parser.add_argument("--gid", type=int, default=65534)
    parser.add_argument(
        "--keep-user",
        action="store_true",
        help="the supervisor may not change users: stay its user, without capabilities",
    )
    parser.add_argument("--supervisor", type=int, default=os.getppid(), help="the supervisor's process id")
    return parser


def confined(options: argparse.Namespace, name: str) -> int | None:
    """Give up privileges, and log as `name` from now on; return the Landlock ABI in force, or nothing where that failed."""
    handlers = [Unwaiting(sys.stderr)]
    logging.basicConfig(format=f"agentsh-net: {name}: %(message)s", level=logging.WARNING, handlers=handlers)
    try:
        return confine(options.uid, options.gid, supervisor=options.supervisor, keep_user=options.keep_user)
    except OSError as error:
        log.error("cannot give up privileges, so it does not run: %s", error)  # noqa: TRY400 - the reason is the whole story
        return None
