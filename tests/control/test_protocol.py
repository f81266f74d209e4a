"""A line is a request, a result or an error, and anything else is refused by name; what goes in comes out."""

import pytest

from agentsh_net.control import protocol
from agentsh_net.control.errors import ControlError
from agentsh_net.control.protocol import Request
from agentsh_net.core.errors import ConfigError, KernelError, Problem, ProtocolError, StoreError


def test_a_request_survives_the_wire_on_one_line():
    request = Request("explain", {"tool": "a\nb", "args": {"x": [1, "\ud800"]}})
    line = request.encode()
    assert line.count(b"\n") == 1
    assert protocol.decode_request(line) == request


def test_args_may_be_left_out():
    assert protocol.decode_request(b'{"call": "status"}\n') == Request("status", {})


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b'{"call": 1}',
        b'{"call": "x", "args": []}',
        b'{"call": "x", "extra": 1}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_request_is_refused(line):
    with pytest.raises(ProtocolError):
        protocol.decode_request(line)


def test_a_result_survives_the_wire():
    assert protocol.decode_answer(protocol.encode_result({"a": None})) == {"a": None}


def test_an_error_arrives_as_the_error_it_was():
    with pytest.raises(ControlError, match="no such") as told:
        protocol.decode_answer(
            protocol.encode_error(ControlError("no such", kind="request", remedy="do that"))
        )
    assert (told.value.kind, told.value.remedy) == ("request", "do that")


@pytest.mark.parametrize("line", [b"nonsense", b"[]", b'{"ok": true}', b'{"ok": false, "error": "text"}'])
def test_what_is_no_answer_is_refused(line):
    with pytest.raises(ProtocolError):
        protocol.decode_answer(line)


@pytest.mark.parametrize(
    ("error", "kind", "remedy"),
    [
        (
            ConfigError([Problem("a.b", "1", "text")]),
            "config",
            "mend the file; the policy before it stays in force",
        ),
        (KernelError("no cgroup2", remedy="mount it"), "kernel", "mount it"),
        (StoreError("full", remedy="free space"), "store", "free space"),
        (ProtocolError("bad"), "request", ""),
    ],
)
def test_our_errors_keep_their_words_and_their_remedy(error, kind, remedy):
    told = protocol.control_error(error)
    assert (str(told), told.kind, told.remedy) == (str(error), kind, remedy)
