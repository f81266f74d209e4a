"""Whatever goes wrong between CLI and daemon, the caller learns what and what to do."""

import os
import socket
import threading

import pytest

from agentsh_net.control import client
from agentsh_net.control.client import Client
from agentsh_net.control.errors import ControlError
from agentsh_net.control.protocol import encode_error, encode_result


@pytest.fixture
def path(tmp_path):
    return tmp_path / "control.sock"


@pytest.fixture
def answering(path):
    """Start a daemon of one connection that sends what it is given, and remembers the request."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        threads = []

        def answer(*lines, hold=None):
            def serve():
                connection, _ = listening.accept()
                with connection:
                    answer.request = connection.recv(65536)
                    for line in lines:
                        connection.sendall(line)
                    if hold is not None:
                        hold.wait(10)

            threads.append(threading.Thread(target=serve))
            threads[-1].start()

        yield answer
        for thread in threads:
            thread.join()


def test_a_call_returns_its_result(path, answering):
    answering(encode_result([1, 2]))
    assert Client(path).call("query", kind="calls", filters={"limit": 1}) == [1, 2]
    assert answering.request == b'{"call":"query","args":{"kind":"calls","filters":{"limit":1}}}\n'


def test_an_error_is_raised_with_its_remedy(path, answering):
    answering(encode_error(ControlError("nothing to trust", kind="denied", remedy="see the list")))
    with pytest.raises(ControlError, match="nothing to trust") as told:
        Client(path).call("pins.trust")
    assert told.value.remedy == "see the list"


def fails(path, kind, words, timeout=5.0):
    with pytest.raises(ControlError, match=words) as told:
        Client(path, timeout).call("status")
    assert told.value.kind == kind
    return told.value.remedy


def test_no_daemon_is_told_with_the_way_to_start_one(path):
    assert "agentsh-net run" in fails(path, "unreachable", "no daemon answers")


def test_a_socket_nobody_listens_on_is_no_daemon(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    fails(path, "unreachable", "no daemon answers")


def test_a_path_too_long_is_told(tmp_path):
    fails(tmp_path / ("x" * 200), "unreachable", "cannot reach")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a user without rights")
def test_a_user_without_rights_is_told_of_sudo_and_the_group(path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()
        path.chmod(0o660)
        os.seteuid(65534)
        try:
            assert "group agentsh-net" in fails(path, "unreachable", "may not talk")
        finally:
            os.seteuid(0)


def test_a_daemon_that_hangs_up_is_told(path, answering):
    answering()
    assert "log" in fails(path, "unreachable", "hung up")


def test_a_daemon_that_does_not_answer_is_told_in_time(path, answering):
    release = threading.Event()
    answering(hold=release)
    assert "down --force" in fails(path, "timeout", "did not answer status within 0.05 s", timeout=0.05)
    release.set()


@pytest.mark.parametrize("line", [b"not json\n", b"{}\n"])
def test_an_answer_that_is_none_is_told(path, answering, line):
    answering(line)
    fails(path, "request", "answer")


def test_half_an_answer_is_that_of_a_daemon_that_is_gone(path, answering):
    answering(b'{"ok": true')
    fails(path, "unreachable", "hung up")


def test_an_answer_without_end_is_not_read_without_end(path, answering, monkeypatch):
    monkeypatch.setattr(client, "MAX_ANSWER", 100)
    answering(b"x" * 1000)
    fails(path, "request", "longer than 100")


def test_a_stream_yields_events_until_the_daemon_ends_it(path, answering):
    answering(encode_result({"streaming": True}), b'{"type":"a"}\n', b'{"type":"b"}\n')
    events = Client(path).stream("tail")
    assert [next(events), next(events)] == [{"type": "a"}, {"type": "b"}]
    with pytest.raises(ControlError, match="hung up") as told:
        next(events)
    assert told.value.kind == "unreachable"


def test_a_notice_in_a_stream_is_raised(path, answering):
    answering(
        encode_result({}), b'{"type":"a"}\n', encode_error(ControlError("too slow", kind="slow_reader"))
    )
    stream = Client(path).stream("tail")
    assert next(stream) == {"type": "a"}
    with pytest.raises(ControlError, match="too slow"):
        next(stream)


def test_a_daemon_that_is_killed_in_the_middle_of_an_event_is_told_of(path, answering):
    answering(encode_result({}), b'{"type":"a"}\n{"type":')
    events = Client(path).stream("tail")
    assert next(events) == {"type": "a"}
    with pytest.raises(ControlError, match="hung up") as told:
        next(events)
    assert told.value.kind == "unreachable"
