"""Frames of the shim's link come out as they went in, however the bytes are cut, and nonsense ends the conversation."""

from __future__ import annotations

import pytest

from agentsh_net.core.links import shim_link
from agentsh_net.core.links.shim_link import CALLED, Frames, LinkError, beside, frame, told

SENT = [({"ask": "open", "server": "ß"}, b""), ({"ask": "client"}, b'{"a":\n1}'), ({"ask": "long"}, b"\n")]
BYTES = b"".join(frame(header, payload) for header, payload in SENT)


def test_every_cut_gives_the_same_frames() -> None:
    for cut in range(len(BYTES) + 1):
        frames = Frames()
        got = [*frames.feed(BYTES[:cut]), *frames.feed(BYTES[cut:])]
        assert [({k: v for k, v in h.items() if k != "size"}, p) for h, p in got] == SENT
        assert frames.waiting == 0


def test_byte_by_byte_it_waits_for_the_rest() -> None:
    frames = Frames()
    got = [item for i in range(len(BYTES)) for item in frames.feed(BYTES[i : i + 1])]
    assert [payload for _, payload in got] == [payload for _, payload in SENT]


@pytest.mark.parametrize(
    "data",
    [
        b"hello\n", b"[]\n", b"{}\n", b'{"size":-1}\n', b'{"size":"1"}\n', b'{"size":true}\n', b'{"size":1.0}\n', b"7\n",
        b'{"size":%d}\n' % (shim_link.MAX_PAYLOAD + 1), b"[" * 100_000 + b"\n", b"x" * (shim_link.MAX_HEADER + 1),
    ],
    ids=lambda data: repr(data[:20]),
)  # fmt: skip
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(LinkError):
        list(Frames().feed(data))


def test_the_shims_socket_lies_beside_the_control_socket() -> None:
    assert beside("/run/agentsh-net/control.sock") == "/run/agentsh-net/control-shim.sock"
    assert beside("/tmp/a.b/odd") == "/tmp/a.b/odd-shim.sock"


def test_the_frame_that_tells_of_calls_is_the_one_that_is_written_otherwise() -> None:
    assert told(b"") == frame({"ask": CALLED})
    assert told(b"a\nb") == frame({"ask": CALLED}, b"a\nb")


def test_a_header_that_came_before_is_read_alike_and_only_so_many_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shim_link, "MAX_KNOWN", 3)
    frames = Frames()
    sent = [told(b"x" * (n % 7)) for n in range(20)] + [frame({"ask": "a" * 100})]
    got = [*frames.feed(b"".join(sent))]
    assert [frame({"ask": header["ask"]}, payload) for header, payload in got] == sent
    assert len(frames._known) == 3


def test_a_long_header_is_not_remembered() -> None:
    frames = Frames()
    long = frame({"ask": "x" * shim_link.MAX_KNOWN_SIZE})
    assert [header["ask"] for header, _ in frames.feed(long)] == ["x" * shim_link.MAX_KNOWN_SIZE]
    assert not frames._known
