"""However an array is cut into pieces, its elements come out whole, and the raws of all frames, joined, are the input."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts.playing import framed

from agentsh_net.core.framing.json_array import ArrayDecoder
from agentsh_net.core.framing.sse import Frame

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='ab"\\{}[],é\n ', max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='k"\\{', max_size=3), inner),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=3), max_size=4)


def frames(data: bytes, cuts: Iterable[int] = (), max_frame: int = 1 << 20) -> list[Frame]:
    return framed(ArrayDecoder(max_frame), data, cuts)


@given(OBJECTS, st.lists(st.integers(0, 500)), st.sampled_from([None, 1]))
def test_elements_are_those_of_the_array_whatever_the_chunks(values, cuts, indent) -> None:
    data = json.dumps(values, indent=indent, ensure_ascii=False).encode()
    found = frames(data, cuts)
    assert [json.loads(f.data) for f in found if f.data is not None] == values
    assert b"".join(f.raw for f in found) == data


@given(
    st.binary(max_size=60) | st.text(alphabet='[]{}",\\ a\n').map(str.encode), st.lists(st.integers(0, 60))
)
def test_no_byte_is_lost_or_made_and_chunks_decide_nothing(data: bytes, cuts: list[int]) -> None:
    assert b"".join(f.raw for f in frames(data, cuts)) == data
    assert frames(data, cuts) == frames(data)


def test_an_element_comes_with_what_stands_before_it() -> None:
    assert frames(b'[\n{"a":1}\n,\r\n{"b":"]}"} ]\n') == [
        Frame(b'[\n{"a":1}', data=b'{"a":1}'),
        Frame(b'\n,\r\n{"b":"]}"}', data=b'{"b":"]}"}'),
        Frame(b" ]\n"),
    ]


def test_objects_that_follow_each_other_and_a_byte_order_mark_are_cut_alike() -> None:
    data = b'\xef\xbb\xbf{"a":1}{"b":2}\n{"c":3}'
    assert [f.data for f in frames(data)] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']
    assert [f.data for f in frames(data, [1, 2, 3, 4])] == [b'{"a":1}', b'{"b":2}', b'{"c":3}']


@pytest.mark.parametrize("junk", [b'"x', b"1", b"data: {}", b"'", b"\0", b"}"])
def test_what_is_no_element_is_kept_to_the_end_in_one_piece(junk: bytes) -> None:
    found = frames(b'[{"a":1},' + junk + b'{"functionCall":{}}]')
    assert [f.data for f in found] == [b'{"a":1}', b"," + junk + b'{"functionCall":{}}]']


def test_an_element_without_an_end_is_given_out_as_it_is() -> None:
    assert frames(b'[{"a":[{}') == [Frame(b'[{"a":[{}', data=b'[{"a":[{}')]


@pytest.mark.parametrize("cuts", [[], list(range(200))])
def test_what_is_too_long_comes_in_oversize_pieces_and_the_next_element_whole(cuts: list[int]) -> None:
    data = b'[{"a":"' + b"x\\\\" * 30 + b'"},{"b":2}]'
    found = frames(data, cuts, max_frame=50)
    assert b"".join(f.raw for f in found) == data
    assert [f.data for f in found if not f.oversize] == [b'{"b":2}', None]
    assert any(f.oversize for f in found)
    assert all(len(f.raw) <= 110 for f in found)


def test_what_is_kept_is_bounded() -> None:
    decoder = ArrayDecoder(100)
    for start in (b'[{"a":"', b"[" + b" " * 10, b"[1"):
        decoder = ArrayDecoder(100)
        decoder.feed(start)
        for _ in range(50):
            decoder.feed(b"x" * 30)
            assert len(decoder._buffer) <= 130
