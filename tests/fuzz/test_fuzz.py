"""The fuzzers' laws hold for every input that once broke one, for what fuzzing begins with, and for some hundred random ones."""

from __future__ import annotations

import collections
import random
from collections.abc import Callable

import pytest
from fuzz import grammar, mcp_lines, mutants, readers, streams
from fuzz.targets import FOUND, TARGETS, seeds

from agentsh_net.core.mcp import dangers, uncertain


@pytest.mark.parametrize("target", TARGETS)
def test_the_laws_hold_for_the_first_inputs_of_a_target(target: str) -> None:
    inputs = list(seeds(target))
    assert len(inputs) >= 2
    for data in inputs:
        TARGETS[target](data[:1500])


@pytest.mark.parametrize("target", TARGETS)
def test_the_laws_hold_for_random_inputs(target: str) -> None:
    rng = random.Random(target)
    for _ in range(40):
        TARGETS[target](bytes([rng.choice((8, 24)) | rng.randrange(8)]) + rng.randbytes(rng.randrange(80)))


def test_the_laws_hold_for_what_once_broke_them() -> None:
    for path in sorted(path for path in FOUND.iterdir() if path.suffix != ".md"):
        target = max((target for target in TARGETS if path.name.startswith(f"{target}-")), key=len)
        TARGETS[target](path.read_bytes())


@pytest.mark.parametrize("name", streams.WIRES)
def test_the_readers_do_find_denied_calls_in_what_the_grammar_makes(name: str) -> None:
    wire = streams.WIRES[name]
    rng = random.Random(7)
    found = [
        wire.denied_in(wire.make(grammar.Choices(rng.randbytes(rng.randrange(4, 60))))) for _ in range(60)
    ]
    assert sum(map(bool, found)) >= 8


@pytest.mark.parametrize("name", streams.WIRES)
def test_the_laws_notice_a_judge_who_lets_all_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    allowed = streams.Verdict(streams.Action.ALLOW, "allowed")
    monkeypatch.setattr(streams, "judge", lambda call: allowed)
    rng = random.Random(8)
    inputs = [b"\x08" + rng.randbytes(60) for _ in range(100)]
    with pytest.raises(AssertionError, match=r"wins: |any case: "):
        collections.deque((streams.check(streams.WIRES[name], data) for data in inputs), maxlen=0)


@pytest.mark.parametrize(
    ("law", "look"), [(mcp_lines.of_client, "doubt_of_client"), (mcp_lines.of_server, "doubt")]
)
def test_the_laws_notice_lines_that_pass_though_some_reader_finds_a_call_or_a_list_in_them(
    law: Callable[[bytes], None], look: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dangers, look, lambda _: "")
    monkeypatch.setattr(uncertain, "held", lambda *_: uncertain.NOTHING)
    rng = random.Random(9)
    with pytest.raises(AssertionError):
        collections.deque((law(rng.randbytes(4)) for _ in range(400)), maxlen=0)


@pytest.mark.parametrize("name", mutants.HONEST)
def test_honest_streams_leave_as_they_came_and_all_that_clients_run_of_them_was_judged(name: str) -> None:
    for wire in (each for each in streams.WIRES.values() if each.build.__name__ == name):
        sent = wire.make(grammar.Choices(b""), honest=True)
        result = streams.came(wire, streams.WIDE, [sent], fail_closed=True)
        assert result.out == sent
        assert len(result.allowed) >= 2
        assert wire.denied_in(sent, result) == ""
        assert wire.denied_in(sent, streams.Came())  # it does look


def test_the_readers_cut_events_by_the_standard() -> None:
    data = b"\xef\xbb\xbf: c\r\ndata:a\rdata: b\n\nevent: x\n\ndata\n\nevent: y\ndata:  c"
    assert readers.events(data) == [("", b"a\nb"), ("", b""), ("y", b" c")]
