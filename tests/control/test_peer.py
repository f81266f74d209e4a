"""The kernel says who asks, and only root, the daemon's own user and the group may."""

import os
import socket
import subprocess
import sys

import pytest

from agentsh_net.control.peer import Peer, daemon_uid, peer_of


def test_the_peer_of_a_socket_pair_is_this_process():
    left, right = socket.socketpair()
    with left, right:
        peer = peer_of(left)
    assert (peer.pid, peer.uid, peer.gid) == (os.getpid(), os.geteuid(), os.getegid())
    assert daemon_uid() == os.geteuid()


@pytest.mark.parametrize(
    ("peer", "may"),
    [
        (Peer(1, 0, 0), True),
        (Peer(1, 990, 990), True),
        (Peer(1, 1000, 1000), False),
        (Peer(1, 1000, 77), True),
        (Peer(1, 1000, 1000, frozenset({77})), True),
        (Peer(1, 65534, 65534, frozenset({78})), False),
    ],
)
def test_root_the_daemons_user_and_the_group_may_ask(peer, may):
    assert peer.may_ask(daemon_uid=990, group=77) is may


def test_without_a_group_only_root_and_the_daemons_user_may_ask():
    assert not Peer(1, 1000, 77, frozenset({77})).may_ask(daemon_uid=990, group=None)


CONNECT = (
    "import os, socket, sys; os.setgroups([5, 4321]); os.setgid(65534); os.setuid(65534);"
    "s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.recv(1)"
)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to connect as another user")
def test_supplementary_groups_are_those_the_process_really_has(tmp_path):
    for parent in list(tmp_path.parents)[:-2]:  # pytest's directories are closed to others
        parent.chmod(0o711)
    tmp_path.chmod(0o711)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "s"))
        (tmp_path / "s").chmod(0o666)
        listening.listen()
        with subprocess.Popen([sys.executable, "-c", CONNECT, tmp_path / "s"]) as child:
            connection, _ = listening.accept()
            with connection:
                peer = peer_of(connection)
            assert (peer.pid, peer.uid, peer.gid) == (child.pid, 65534, 65534)
    assert {5, 4321} <= peer.groups
