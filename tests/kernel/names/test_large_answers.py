"""A large answer is read whole, and not in the event loop's time."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

import dns.flags
import dns.message
import pytest
from netns import box

from agentsh_net.core.network.dns_message import question_of
from agentsh_net.kernel.names.resolver import ask_dns


class LargeAnswer:
    """A name server that cuts its answers by UDP and has 4,000 addresses by TCP."""

    def __init__(self) -> None:
        self.streams = socket.create_server(("127.0.0.1", 53))
        self.datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.datagrams.bind(("127.0.0.1", 53))
        for serve in (self._cut, self._whole):
            threading.Thread(target=serve, daemon=True).start()

    def _cut(self) -> None:
        query, peer = self.datagrams.recvfrom(4096)
        answer = dns.message.make_response(dns.message.from_wire(query))
        answer.flags |= dns.flags.TC
        self.datagrams.sendto(answer.to_wire(), peer)

    def _whole(self) -> None:
        stream = self.streams.accept()[0]
        query = stream.recv(4096)[2:]
        head = (
            query[:2] + struct.pack(">5H", 0x8180, 1, 4000, 0, 0) + query[12 : 12 + len(question_of(query))]
        )
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 9, 4)
        answer = head + b"".join(record + (0x0A000000 + n).to_bytes(4, "big") for n in range(4000))
        stream.sendall(len(answer).to_bytes(2, "big") + answer)


@pytest.mark.kernel
def test_a_large_answer_is_read_whole_and_does_not_hold_up_the_event_loop(tmp_path: Path) -> None:
    def inside() -> tuple[int, bool]:
        (tmp_path / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        resolv = os.path.realpath("/etc/resolv.conf")
        subprocess.run(["mount", "--bind", tmp_path / "resolv.conf", resolv], check=True)
        server, readers, read = LargeAnswer(), [], dns.message.from_wire

        def noted(*arguments: Any, **options: Any) -> dns.message.Message:
            message = read(*arguments, **options)
            if message.answer:
                readers.append(threading.current_thread())
            return message

        dns.message.from_wire = noted
        found = asyncio.run(ask_dns("large.test", "A"))
        assert server
        return len(found.addresses), threading.main_thread() in readers

    assert box.in_box(inside) == (4000, False)
