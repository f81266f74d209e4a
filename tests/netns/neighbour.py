"""A neighbour that answers to names ending in .local (RFC 6762), as a printer or a home automation does."""

from __future__ import annotations

import socket
import struct
import threading

import dns.message
import dns.rrset

from netns.box import Namespace

GROUP, PORT = "224.0.0.251", 5353


class Neighbour:
    """Answers who asks from a port of his own (6.7) from `records` ((name, kind) -> addresses), at one address of its namespace."""

    def __init__(self, place: Namespace, address: str) -> None:
        self.records: dict[tuple[str, str], list[str]] = {}
        self.asked = 0
        self._socket = place.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind((GROUP, PORT))
        member = struct.pack("4s4s", socket.inet_aton(GROUP), socket.inet_aton(address))
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        self._answering = place.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._answering.bind((address, PORT))
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            data, client = self._socket.recvfrom(9000)
            query = dns.message.from_wire(data)
            question = query.question[0]
            kind = "AAAA" if question.rdtype == 28 else "A"
            found = self.records.get((question.name.to_text(omit_final_dot=True), kind), [])
            self.asked += 1
            if not found:
                continue  # a neighbour who does not know says nothing
            answer = dns.message.make_response(query)
            answer.answer.append(dns.rrset.from_text(question.name, 120, "IN", kind, *found))
            self._answering.sendto(answer.to_wire(), client)
