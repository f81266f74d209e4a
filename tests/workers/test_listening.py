"""A port that cannot be had is a problem of the configuration with its place; several sockets share one port only among themselves."""

from __future__ import annotations

import socket

import pytest

from agentsh_net.core.configuration.settings import Metrics, Proxy
from agentsh_net.core.errors import ConfigError
from agentsh_net.workers.listening import bind, url


@pytest.mark.parametrize("workers", [1, 3])
def test_every_worker_has_a_socket_on_one_port_that_no_other_daemon_shares(workers: int) -> None:
    sockets = bind(Proxy(port=0, workers=workers))
    assert len(sockets) == workers
    [port] = {s.getsockname()[1] for s in sockets}
    for each in sockets:
        each.listen()
        assert not each.getblocking()
        assert bool(each.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT)) is (workers > 1)
    for others in (1, 3):
        with pytest.raises(ConfigError) as caught:
            bind(Proxy(port=port, workers=others))
        assert caught.value.problems[0].found == f"127.0.0.1:{port} (Address already in use)"
    for each in sockets:
        each.close()


def test_a_port_is_had_again_at_once_after_its_connections_were_closed() -> None:
    [listener] = bind(Proxy(port=0))
    with listener:
        listener.listen()
        address = listener.getsockname()
        with socket.create_connection(address, timeout=10):
            listener.setblocking(True)
            listener.accept()[0].close()  # ours first: the port is in TIME_WAIT
    [again] = bind(Proxy(port=address[1]))
    again.close()


def test_what_cannot_be_had_is_told_with_its_place() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            bind(Metrics("127.0.0.1", port), section="metrics")
        assert caught.value.problems[0].path == "metrics.port"
        with pytest.raises(ConfigError) as caught:
            bind(Proxy(port=port, workers=2))
        assert caught.value.problems[0].path == "proxy.port"
    for nowhere in ("no.such.host.invalid", "192.0.2.1"):
        with pytest.raises(ConfigError) as caught:
            bind(Proxy(listen=nowhere, port=0))
        problem = caught.value.problems[0]
        assert (problem.path, problem.expected) == ("proxy.listen", "an address of this host")


@pytest.mark.parametrize(
    ("address", "shown"),
    [("0.0.0.0", "127.0.0.1"), ("::", "[::1]"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")],
)
def test_what_takes_every_address_is_shown_by_one_that_clients_here_can_use(address: str, shown: str) -> None:
    [listener] = bind(Proxy(listen=address, port=0))
    with listener:
        port = listener.getsockname()[1]
        assert url(listener) == f"http://{shown}:{port}"
        listener.listen()
        socket.create_connection((shown.strip("[]"), port), timeout=10).close()
