"""A line is read as every peer reads it, or it is said why not, what it may be to some peer, and whom it answers."""

from __future__ import annotations

import json

import pytest
from shim_front import call, result

from agentsh_net.shims import reading
from agentsh_net.shims.reading import Unread


def test_what_everybody_reads_alike_is_read() -> None:
    read = reading.of_client(json.dumps(call("ls", 5)).encode())
    assert not isinstance(read, Unread)
    assert read.messages[0].raw["id"] == 5
    assert not isinstance(reading.of_server(json.dumps(result(5)).encode()), Unread)


@pytest.mark.parametrize(
    ("line", "ids", "dangerous"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}', (7,), True),
        (b'{"jsonrpc":"2.0","id":"a","method":"ping","method":"tools/call"}', ("a",), True),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', (7,), False),
        (b"[1", (), True),
        (b"hello", (), False),
    ],
)
def test_of_a_clients_line_that_is_not_certain_its_id_and_danger_are_told(
    line: bytes, ids: tuple[int | str, ...], *, dangerous: bool
) -> None:
    read = reading.of_client(line)
    assert isinstance(read, Unread)
    assert read.ids == ids
    assert bool(read.danger) is dangerous
    assert read.why


@pytest.mark.parametrize(
    ("line", "ids", "noise"),
    [
        (b'[{"id":1,"result":{}},{"id":2,"error":{}},{"id":3,"method":"ping"}]', (1, 2), False),
        (b'{"id":4,"id":4,"result":{}}', (4,), False),
        (b"listening on port 80", (), True),
        (b'{"id":5,"result":{', (), False),
    ],
)
def test_of_a_servers_line_that_is_not_certain_it_is_told_what_it_answers_or_that_it_is_noise(
    line: bytes, ids: tuple[int, ...], *, noise: bool
) -> None:
    read = reading.of_server(line)
    assert isinstance(read, Unread)
    assert (read.ids, read.noise) == (ids, noise)
