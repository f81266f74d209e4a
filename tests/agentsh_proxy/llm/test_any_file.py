"""A fetched file of results is read line by line; every other file leaves as it came, however it comes in."""

from __future__ import annotations

import gzip
import json

import pytest
from agentsh_proxy.llm.any_file import any_file
from agentsh_proxy.llm.inspecting import Inspection
from agentsh_proxy.llm.relaying import Client

from agentsh_net.core.dialects.base import Limits
from agentsh_net.core.dialects.batches import FILES
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Action, Verdict
from agentsh_net.core.web.http_head import parse_response

BOTH = Client(chunks=True, keep_alive=True)
SIZES = pytest.mark.parametrize("size", [1, 13, 1 << 20])


def line(name: str) -> bytes:
    call = {"id": "c", "type": "function", "function": {"name": name, "arguments": "{}"}}
    body = {
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": None, "tool_calls": [call]},
                "finish_reason": "tool_calls",
            }
        ]
    }
    return json.dumps({"custom_id": "x", "response": {"status_code": 200, "body": body}}).encode() + b"\n"


def taken(data: bytes, size: int, *fields: bytes, fail_closed: bool = False, status: bytes = b"200 OK"):
    """Return what leaves, head and body, and what was told."""
    notes: list = []
    inspection = Inspection(
        dialect=FILES, judge=lambda call: Verdict(Action.BLOCK if call.name == "rm" else Action.ALLOW, "no"),
        limits=Limits(max_frame=4096), fail_closed=fail_closed, max_body=1 << 20, wants_stream=True,
        note=lambda step: notes.extend((*step.judged, *step.faults)),
    )  # fmt: skip
    head = parse_response(
        b"\r\n".join([b"HTTP/1.1 " + status, *fields, b"Content-Length: %d" % len(data)]) + b"\r\n\r\n"
    )
    answer = any_file(head, BOTH, inspection)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    out = b"".join(answer.feed(piece, last=at == len(pieces) - 1) for at, piece in enumerate(pieces))
    assert answer.done
    opening, _, body = out.partition(b"\r\n\r\n")
    return opening, body, notes


def dechunked(body: bytes) -> bytes:
    out = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        out, body = out + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return out


@SIZES
def test_a_denied_call_leaves_the_line_it_stands_in(size: int):
    _, body, notes = taken(line("get") + line("rm") + line("get"), size)
    lines = dechunked(body).splitlines(keepends=True)
    assert [lines[0], lines[2]] == [line("get")] * 2
    assert "tool_calls" not in json.loads(lines[1])["response"]["body"]["choices"][0]["message"]
    assert [n.verdict.blocked for n in notes] == [False, True, False]


@SIZES
@pytest.mark.parametrize(
    "data",
    [b"\x89PNG\r\n\x1a\n\0\0tool_calls", b"a,b\n1,2\n", b"# tools\n", b'{\n  "a": [\n    "tool"\n  ]\n}\n', b'["tool", 1]\n', b"{tool: 1}\n", b" \n",
     b"\x1f\x8b\x08\x00tool", b"x" * 9000, b"{" + b" " * 3000 + b"\n" + b"}" * 2000],
    ids=range(10),
)  # fmt: skip
def test_every_other_file_leaves_with_its_length_and_bytes(size: int, data: bytes):
    opening, body, notes = taken(data, size, b"Content-Type: application/octet-stream", fail_closed=True)
    assert (body, notes) == (data, [])
    assert b"Content-Length: %d" % len(data) in opening


@SIZES
def test_a_file_of_another_shape_that_speaks_of_a_call_goes_by_fail_closed(size: int):
    data = b'[\n{"message": {"tool_calls": [{"id": "c"}]}}]'
    _, body, notes = taken(data, size)
    assert (body, [n.cause for n in notes]) == (data, ["unread_call"])
    with pytest.raises(ProtocolError, match="speaks of a call"):
        taken(data, size, fail_closed=True)


@SIZES
def test_results_that_come_compressed_are_read(size: int):
    opening, body, notes = taken(gzip.compress(line("rm")), size, b"Content-Encoding: gzip")
    assert b"rm" not in dechunked(body).replace(b"[agentsh] Tool 'rm'", b"")
    assert b"Content-Encoding" not in opening
    assert [n.verdict.blocked for n in notes] == [True]
    with pytest.raises(ProtocolError):
        taken(b"\x1f\x8b junk", size, b"Content-Encoding: gzip")


def test_a_first_line_above_the_bound_goes_by_fail_closed():
    long = line("rm").replace(b'"x"', b'"' + b"x" * 5000 + b'"')
    _, body, notes = taken(long, 100)
    assert (dechunked(body), [n.cause for n in notes]) == (long, ["frame_too_long"])


@SIZES
def test_a_part_of_a_file_keeps_its_place_and_goes_by_fail_closed_if_it_speaks_of_a_call(size: int):
    part = (b"206 Partial Content", b"Content-Range: bytes 0-9/99")
    opening, body, notes = taken(line("rm"), size, part[1], status=part[0])
    assert part[1] in opening
    assert (body, [n.cause for n in notes]) == (line("rm"), ["unread_call"])
    with pytest.raises(ProtocolError):
        taken(line("rm"), size, part[1], status=part[0], fail_closed=True)
