"""What the supervisor keeps of root's capabilities (capabilities(7)), from its first moment on; what it starts keeps none.

CAP_SYS_ADMIN is among them: looking a program up by id and entering other network namespaces for the sweep both ask for it.
"""

from __future__ import annotations

from typing import Final

from agentsh_net import capabilities

WORKERS: Final = "agentsh-net"  # whom the proxy's workers run as, where the administrator made this user

KEPT: Final = (
    "CAP_CHOWN",  # the socket and the store belong to the group agentsh-net
    "CAP_DAC_OVERRIDE",  # the operator may keep the store where root is not the owner
    "CAP_DAC_READ_SEARCH",  # client configs of the person behind sudo
    "CAP_KILL",  # workers run as another user
    "CAP_SETGID",
    "CAP_SETUID",
    "CAP_SETPCAP",  # a worker empties its bounding set
    "CAP_NET_BIND_SERVICE",  # proxy.port below 1024
    "CAP_NET_ADMIN",
    "CAP_NET_RAW",  # the packet socket that sees DNS answers
    "CAP_SYS_PTRACE",  # the executable behind a pid
    "CAP_SYS_ADMIN",
    "CAP_SYS_RESOURCE",  # locked memory for maps on kernels before 5.11
    "CAP_LEASE",  # whether somebody is still writing the policy file, be it another one's
    "CAP_PERFMON",
    "CAP_BPF",
)


def reduce() -> None:
    """Give up every capability that is not KEPT, for this thread and all that it starts. Raises OSError.

    To be called before there is a second thread: the sets belong to threads. What the process never had it does not get.
    """
    kept = capabilities.mask(KEPT)
    capabilities.bound(kept)
    capabilities.keep(kept, kept, kept)


def renounce(*, change_user: bool) -> None:
    """Let whatever this thread starts from now on never have or gain a privilege. Raises OSError.

    Only this thread's sets change. With `change_user` it stays able to become another user, which ends what is left.
    """
    capabilities.clear_ambient()
    effective = capabilities.effective()
    # Without it no_new_privs has to do: what is bounding is not had.
    if capabilities.has(effective, "CAP_SETPCAP"):
        capabilities.bound()
    left = effective if change_user else 0
    capabilities.keep(left, left, 0)
    capabilities.gain_nothing()
