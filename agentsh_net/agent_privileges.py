"""What an agent that `exec` starts may not have: root, capabilities, new privileges, internet sockets of whoever started it.

Raises OSError where the kernel refuses: an agent that cannot be confined is not started.
"""

from __future__ import annotations

import os
import pwd
import socket
import stat
from collections.abc import Mapping

from agentsh_net import capabilities
from agentsh_net.core.agent_environment import Account
from agentsh_net.core.errors import ConfigError, Problem
from agentsh_net.privileges import WORKERS


def account(wanted: str, environ: Mapping[str, str], euid: int) -> Account | None:
    """Return who the agent shall be, None: who we are. Raises ConfigError.

    Root names somebody, or comes by sudo, or is meant itself (where there is nobody else, as in a container); nobody else can
    become another.
    """
    if euid != 0:
        if wanted and _entry(wanted).uid != euid:
            raise ConfigError([Problem("--as", wanted, "root to start it, with sudo")])
        return None
    return _entry(wanted or environ.get("SUDO_UID", "0"))


def _entry(wanted: str) -> Account:
    try:
        found = pwd.getpwuid(int(wanted)) if wanted.isdigit() else pwd.getpwnam(wanted)
    except (KeyError, OverflowError) as error:
        raise ConfigError([Problem("--as", wanted, "a user of this machine")]) from error
    if found.pw_name == WORKERS:
        raise ConfigError([Problem("--as", wanted, "another user: this one is the proxy's own")])
    return Account(found.pw_name, found.pw_uid, found.pw_gid, found.pw_dir, found.pw_shell)


def give_up(who: Account | None) -> None:
    """Become `who`, without capabilities, and never gain a privilege again: neither setuid nor file capabilities count."""
    if who is not None:
        capabilities.clear_ambient()
        capabilities.bound()
        os.setgroups(os.getgrouplist(who.name, who.gid))
        os.setresgid(who.gid, who.gid, who.gid)
        os.setresuid(who.uid, who.uid, who.uid)
        if os.getresuid() != (who.uid,) * 3 or os.getresgid() != (who.gid,) * 3:
            raise OSError("the change of user did not take hold")
    capabilities.gain_nothing()


def close_internet_sockets() -> list[int]:
    """Close inherited internet sockets behind standard error and return their numbers.

    They were made outside of the session, which is what the packet plane knows a socket by.
    """
    closed = []
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208 - numbers, not paths
        number = int(name)
        try:
            if number > 2 and os.get_inheritable(number) and _is_internet(number):
                os.close(number)
                closed.append(number)
        except OSError:
            continue  # the directory's own descriptor, closed by now
    return sorted(closed)


def _is_internet(number: int) -> bool:
    if not stat.S_ISSOCK(os.fstat(number).st_mode):
        return False
    with socket.socket(fileno=os.dup(number)) as copy:
        return copy.family not in {socket.AF_UNIX, socket.AF_NETLINK, socket.AF_VSOCK}
