"""What a worker gives up before it reads a byte of the network: root, capabilities, new privileges, files.

Raises OSError where the kernel refuses: a worker that cannot be confined does not run.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import site
import sys
from pathlib import Path
from typing import Final

from agentsh_net import capabilities
from agentsh_proxy import landlock

# Half of the machine's memory, in thousandths (proc(5)): the supervisor's share is never as much.
OOM_SCORE: Final = "500"
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE = 1, 4
# What an HTTPS client and the interpreter read while they run. /etc as a folder, not as files: resolv.conf is replaced
# by renaming, and a rule on a file would hold on to the old one. Secrets in it are guarded by their modes.
_READABLE = (
    "/etc", "/usr", "/lib", "/lib64", "/run/systemd/resolve", "/run/resolvconf", "/run/NetworkManager",
    "/dev/urandom", "/dev/null",
)  # fmt: skip


def confine(uid: int, gid: int, *, supervisor: int, keep_user: bool = False) -> int:
    """Give up what a parser of hostile bytes must not have; return the Landlock ABI in force (0: the kernel has none).

    As root the process becomes `uid`:`gid`; otherwise, or with `keep_user`, which a container without CAP_SETUID needs, it stays
    who it is. It dies with `supervisor`, its parent.
    """
    _be_killed_before_the_supervisor()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    capabilities.gain_nothing()
    # Before the change of user: an installation in somebody's home (0700) is beyond `uid`. What it needs of it is imported by now.
    with landlock.opened(_readable()) as readable:
        if os.geteuid() == 0 and not keep_user:
            _become(uid, gid)
        capabilities.keep(0, 0, 0)  # the change of user leaves the inheritable ones
        capabilities.prctl(_PR_SET_DUMPABLE, 0)
        # After the change of user, which clears it (prctl(2)).
        capabilities.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != supervisor:
            raise OSError("the supervisor is gone")
        return landlock.restrict_to_reading(readable)


def _be_killed_before_the_supervisor() -> None:
    """Where memory runs out, have the kernel take the process that another can take the place of."""
    with contextlib.suppress(OSError):  # a procfs that is read-only, or none: then the greatest process goes
        Path("/proc/self/oom_score_adj").write_text(OOM_SCORE, encoding="ascii")


def _become(uid: int, gid: int) -> None:
    if uid == 0 or gid == 0:
        raise OSError("a worker must not run as root: pass --uid and --gid of an unprivileged user")
    # Without it nothing that is in the bounding set can be had either (no_new_privs).
    if capabilities.has(capabilities.effective(), "CAP_SETPCAP"):
        capabilities.bound()
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid):
        raise OSError("the change of user did not take hold")


def _readable() -> list[str]:
    code = {
        sys.prefix,
        sys.base_prefix,
        sys.exec_prefix,
        *site.getsitepackages(),
        *(p for p in sys.path if p),
    }
    certificates = [os.environ[name] for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if name in os.environ]
    return [*_READABLE, *sorted(code), *certificates]
