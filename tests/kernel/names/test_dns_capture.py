"""Every DNS answer that comes to the machine, or passes it, is captured with the kernel's time; no other packet is."""

from __future__ import annotations

import os
import select
import socket
import time
from typing import Any

import pytest
from netns import box

from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.dns_packets import Messages, Payload
from agentsh_net.kernel.names import dns_capture
from agentsh_net.kernel.names.dns_capture import Captured, DnsCapture

MESSAGE = b"as good as any" * 10
LARGE = b"several fragments" * 200
ENDS = [("10.99.0.2", "10.99.0.1"), ("fd00:99::2", "fd00:99::1"), ("127.0.0.1", "127.0.0.1"), ("::1", "::1")]


def everything(capture: DnsCapture) -> list[Captured]:
    found: list[Captured] = []
    while select.select([capture], [], [], 0.2)[0]:
        found += capture.packets()
    return found


def read(packets: list[Captured]) -> list[Payload]:
    messages = Messages()
    return [payload for packet in packets for payload in messages.feed(packet.data)]


def family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def answered(there: box.Namespace, server: str, client: str, message: bytes) -> None:
    """Let a name server of a kind send a message over UDP and over TCP."""
    place = box.Namespace(os.open("/proc/self/ns/net", os.O_RDONLY)) if server == client else there
    with (
        place.socket(family(server), socket.SOCK_DGRAM) as sender,
        socket.socket(family(server), socket.SOCK_DGRAM) as taker,
    ):
        sender.bind((server, 53))
        taker.bind((client, 0))
        sender.sendto(message, taker.getsockname())
        assert taker.recv(1 << 16) == message
    with place.socket(family(server)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((server, 53))
        listener.listen()
        with socket.create_connection((server, 53)) as taker, listener.accept()[0] as sender:
            sender.sendall(len(message).to_bytes(2, "big") + message)
            while taker.recv(1 << 16) == b"":
                break


def captures() -> dict[str, Any]:
    there = box.there()
    capture = DnsCapture()
    began = time.time_ns()
    found: dict[str, Any] = {}
    for server, client in ENDS:
        answered(there, server, client, MESSAGE)
        packets = everything(capture)
        found[server] = [(str(p.sender), p.message, p.cut) for p in read(packets)]
        assert all(began < packet.time_ns < time.time_ns() for packet in packets)
    for server, client in ENDS[:2]:
        answered(there, server, client, LARGE)
        found[f"{server} fragments"] = [(p.message == LARGE, p.cut) for p in read(everything(capture))]
    # A question, and a port that is not 53.
    with (
        there.socket(socket.AF_INET, socket.SOCK_DGRAM) as other,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker,
    ):
        taker.bind(("10.99.0.1", 53))
        other.sendto(b"question", ("10.99.0.1", 53))
        assert taker.recv(100) == b"question"
    found["others"] = everything(capture)
    found["lost"] = capture.count_lost()
    capture.close()
    return found


@pytest.mark.kernel
def test_answers_are_captured_whichever_way_they_come() -> None:
    found = box.in_box(captures)
    for server, _ in ENDS:
        assert found[server] == [(server, MESSAGE, False)] * 2
    for server, _ in ENDS[:2]:
        assert found[f"{server} fragments"] == [(False, True), (True, False)]  # UDP is cut, TCP is not
    assert found["others"] == []
    assert found["lost"] == 0


def floods() -> tuple[int, int]:
    capture = DnsCapture()
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taker,
    ):
        sender.bind(("127.0.0.1", 53))
        taker.bind(("127.0.0.1", 0))
        for _ in range(2000):
            sender.sendto(b"x" * 1000, taker.getsockname())
    return len(everything(capture)), capture.count_lost()


@pytest.mark.kernel
def test_what_nobody_read_in_time_is_counted_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dns_capture, "BUFFER", 1 << 16)
    seen, lost = box.in_box(floods)
    assert lost > 0
    assert seen + lost == 2000


@pytest.mark.kernel
def test_without_the_capability_the_remedy_is_told() -> None:
    def inside() -> str:
        os.setresuid(65534, 65534, 65534)
        with pytest.raises(KernelError) as told:
            DnsCapture()
        return f"{told.value}: {told.value.remedy}"

    assert box.in_box(inside) == (
        "no packet socket: Operation not permitted: "
        "run as root, or with CAP_NET_RAW; or set network.resolve.snoop_dns: false"
    )
