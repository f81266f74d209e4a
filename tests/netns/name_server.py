"""A name server on the box's own loopback, which says what a test wants it to say, or nothing at all."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import threading
from pathlib import Path

import dns.flags
import dns.message
import dns.rcode
import dns.rrset

RESOLV_CONF = Path("/etc/resolv.conf")


class NameServer:
    """Answers A and AAAA with TTL 1 from `records` ((name, kind) -> addresses); with `failing` it answers SERVFAIL.

    `aliases` (name -> name) are answered as CNAME with the records of what they lead to. Over UDP and TCP.
    """

    def __init__(self) -> None:
        """Listen at 127.0.0.1:53, and make it the only name server of this mount namespace."""
        self.records: dict[tuple[str, str], list[str]] = {}
        self.aliases: dict[str, str] = {}
        self.failing = False
        self.asked = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 53))
        with tempfile.NamedTemporaryFile("w", prefix="resolv-", delete=False) as file:
            file.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        Path(file.name).chmod(0o644)
        subprocess.run(["mount", "--bind", file.name, str(RESOLV_CONF.resolve())], check=True)
        Path(file.name).unlink()
        threading.Thread(target=self._serve, daemon=True).start()
        self._streams = socket.create_server(("127.0.0.1", 53))
        threading.Thread(target=self._serve_streams, daemon=True).start()

    def _serve_streams(self) -> None:
        while True:
            client, _ = self._streams.accept()
            with client, client.makefile("rb") as stream:
                while head := stream.read(2):
                    answer = self._answer(stream.read(int.from_bytes(head, "big")))
                    whole = len(answer).to_bytes(2, "big") + answer
                    for piece in (whole[:1], whole[1:20], whole[20:]):  # as hostile as a stream may be
                        client.sendall(piece)

    def _serve(self) -> None:
        while True:
            data, client = self._socket.recvfrom(4096)
            self._socket.sendto(self._answer(data), client)

    def _answer(self, data: bytes) -> bytes:
        query = dns.message.from_wire(data)
        answer = dns.message.make_response(query)
        answer.flags |= dns.flags.RA
        # Not for the providers, whom the daemon knows.
        self.asked += query.question[0].name.to_text().endswith(".test.")
        if self.failing:
            answer.set_rcode(dns.rcode.SERVFAIL)
            return answer.to_wire()
        question = query.question[0]
        kind = "AAAA" if question.rdtype == 28 else "A"
        name = question.name.to_text(omit_final_dot=True)
        if target := self.aliases.get(name):
            answer.answer.append(dns.rrset.from_text(f"{name}.", 1, "IN", "CNAME", f"{target}."))
            name = target
        found = self.records.get((name, kind), [])
        if found:
            answer.answer.append(dns.rrset.from_text(f"{name}.", 1, "IN", kind, *found))
        return answer.to_wire()
