"""From the command line to a running daemon and its exit status: what is wrong at the start is said in the operator's words.

What the daemon does while it runs is its own business.
"""

from __future__ import annotations

import logging
import os
import resource
import sys
from pathlib import Path

from agentsh_net import log, privileges
from agentsh_net.config import options
from agentsh_net.config.options import Options
from agentsh_net.control.errors import ControlError
from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import MORE_FILES, NO_FILES, ConfigError, KernelError, ProtocolError, StoreError
from agentsh_net.kernel.bpf import ahead
from agentsh_net.kernel.limits import may_change_user
from agentsh_net.threads import Threads

EXIT_CONFIG, EXIT_ENVIRONMENT = 2, 3
# Seconds (Python's own is 0.005): the kernel is asked in threads by many short calls, each of which waits so long for its turn
# while the event loop is busy. A reload beside a flood is made of a thousand of them.
SWITCH_INTERVAL = 0.0002

_PROC = Path("/proc/self/mountinfo")
# Where cgroups are mounted, who has a socket, what a process may do: all of it is read there.
WITHOUT_PROC = "no procfs is mounted at /proc (fix: mount -t proc proc /proc)"


def worker_uid(network: Network) -> int | None:
    """Return the user that only our workers are, for hosts without cgroup v2; None where others may be it.

    In a pod whoever is root in the agent's container can be any user.
    """
    from agentsh_net.workers.unprivileged import identity

    return identity().uid if may_change_user() and network.scope != "netns" else None


def main(
    config: Path | None, *, audit: bool | None, ready_file: Path | None, socket: Path | None = None
) -> int:
    """Run the daemon until a signal or `agentsh-net down` stops it, and return its exit status."""
    if not _PROC.exists():
        print(WITHOUT_PROC, file=sys.stderr)  # noqa: T201 - there is no log yet
        return EXIT_ENVIRONMENT
    wanted = Options(config, audit, ready_file, socket)
    sys.setswitchinterval(SWITCH_INTERVAL)
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # 1024 are few for shims and servers
    _, greatest_core = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, greatest_core))  # it would hold credentials
    if os.geteuid() == 0:
        privileges.reduce()
    logger = logging.getLogger(log.LOGGER)  # as it is by itself, until it is known how it shall be
    try:
        loaded = options.load(wanted, os.environ)
        logger = log.configure(form=loaded.config.log.format, level=loaded.config.log.level)
        load = ahead.begin(loaded.config.network)  # while all that follows is imported
        import asyncio

        from agentsh_net.daemon import Daemon
        from agentsh_net.kernel.host import open_kernel

        worker = worker_uid(loaded.config.network)
        daemon = Daemon(wanted, loaded, logger, lambda n: open_kernel(n, load=load, worker_uid=worker))
        with asyncio.Runner() as runner:
            runner.get_loop().set_default_executor(Threads())
            return runner.run(daemon.run())
    except ConfigError as error:
        for problem in error.problems:
            print(problem.within(str(wanted.config or "built-in default")), file=sys.stderr)  # noqa: T201 - as `policy check` does
        return EXIT_CONFIG
    except (KernelError, StoreError, ControlError, ProtocolError) as error:
        remedy = getattr(error, "remedy", "")
        logger.error("%s%s", error, f" (fix: {remedy})" if remedy else "")  # noqa: TRY400 - the reason is the whole story
        return EXIT_ENVIRONMENT
    except OSError as error:
        if error.errno not in NO_FILES:
            raise
        logger.error("%s (fix: %s)", error.strerror, MORE_FILES)  # noqa: TRY400 - likewise
        return EXIT_ENVIRONMENT
    finally:
        log.flush()
