"""A head like one before reads as the reader reads it, and whatever could make a difference is read anew."""

from __future__ import annotations

from functools import partial

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.web import familiar_heads
from agentsh_net.core.web.familiar_heads import AnswerHeads, mould
from agentsh_net.core.web.http_head import find_head, parse_request, parse_response


def request(*fields: bytes) -> bytes:
    return b"\r\n".join([b"POST /v1/messages HTTP/1.1", b"Host: localhost", *fields]) + b"\r\n\r\n"


def test_a_head_that_differs_in_its_length_alone_is_known_again():
    first = request(b"X-Api-Key: k", b"content-LENGTH:  12 ", b"Accept: x")
    known = mould(first)
    assert known.length_in(first) == 12
    assert known.length_in(first.replace(b"12", b"4711")) == 4711
    assert mould(request()) is None


@pytest.mark.parametrize(
    "other",
    [
        request(b"X-Api-Key: other", b"Content-Length: 12"),
        request(b"X-Api-Key: k", b"Content-Length: 12", b"Transfer-Encoding: chunked"),
        request(b"X-Api-Key: k", b"Content-Length: +12"),
        request(b"X-Api-Key: k", b"Content-Length: 12\r\nContent-Length: 13"),
        request(b"X-Api-Key: k", b"Content-Length: "),
        request(b"X-Api-Key: k", b"Content-Length: 1 2"),
        request(b"X-Api-Key: k", b"Content-Length: " + b"9" * 16),
        request(b"X-Api-Key: k"),
        b"",
    ],
)
def test_any_other_head_is_read_anew(other):
    assert mould(request(b"X-Api-Key: k", b"Content-Length: 12")).length_in(other) is None


def test_a_request_that_is_whole_gives_its_body_and_any_other_does_not():
    first = request(b"X-Api-Key: k", b"Content-Length: 2", b"Accept: x")
    known = mould(first)
    assert known.body_in(first + b"{}") == b"{}"
    assert known.body_in(first.replace(b": 2", b": 12") + b"x" * 12) == b"x" * 12
    for other in (
        first,
        first + b"{",
        first + b"{}\r\n",
        first.replace(b": k", b": other") + b"{}",
        first.replace(b": 2", b": +2") + b"{}",
        first.replace(b": 2", b": 2\r\nContent-Length: 2") + b"{}",
        first.replace(b": 2", b": " + b"0" * 20 + b"2") + b"{}",
        b"",
    ):
        assert known.body_in(other) is None, other


@given(st.binary(max_size=30), st.integers(0, 200))
def test_what_a_mould_knows_reads_as_the_reader_reads_it(change, at):
    first = request(b"X-Api-Key: k", b"Content-Length: 12")
    known = mould(first)
    other = first[:at] + change + first[at:]
    length = known.length_in(other)
    if length is not None:
        assert parse_request(other)[:4] == (*parse_request(first)[:3], parse_request(other).fields)
        assert parse_request(other).length == length


@given(st.binary(max_size=30), st.integers(0, 200), st.integers(0, 9))
def test_a_body_that_a_mould_finds_is_the_one_that_the_reader_finds(change, at, cut):
    first = request(b"X-Api-Key: k", b"Content-Length: 12")
    sent = first + b"0123456789\r\n"
    other = sent[:at] + change + sent[at + cut :]
    body = mould(first).body_in(other)
    if body is not None:
        length = find_head(other)
        assert other[length:] == body
        assert parse_request(other[:length]).length == len(body)


OK = b"HTTP/1.1 200 OK"
JSON = b"Content-Type: application/json"


def answer(*fields: bytes, line: bytes = OK) -> bytes:
    return b"\r\n".join([line, *fields]) + b"\r\n\r\n"


def read(heads, raw):
    return heads.read(raw.removesuffix(b"\r\n\r\n"))


def outcome(read, raw):
    try:
        return read(raw)
    except ProtocolError as error:
        return error.status, str(error)


def test_a_head_that_differs_in_lines_of_no_consequence_is_known_again(monkeypatch):
    heads = AnswerHeads()
    first = answer(b"Date: a", JSON, b"Content-Length: 12", b"Request-Id: 1", b"Server: s")
    second = answer(b"Date: b", JSON, b"Content-Length: 3", b"Request-Id: 2", b"Server: s")
    third = answer(b"Date: c", JSON, b"Content-Length: 4711", b"Request-Id: 3", b"Server: s")
    expected = [parse_response(raw) for raw in (first, second, third)]
    found = [read(heads, first), read(heads, second)]
    monkeypatch.setattr(familiar_heads, "parse_response", None)  # it is not asked again
    assert [*found, read(heads, third)] == expected
    assert expected[2].length == 4711


def test_a_head_without_a_length_is_known_again(monkeypatch):
    heads = AnswerHeads()
    raw = answer(b"Content-Type: text/event-stream", b"Transfer-Encoding: chunked", b"Connection: keep-alive")
    expected = [read(heads, raw), read(heads, raw)]
    monkeypatch.setattr(familiar_heads, "parse_response", None)
    assert [read(heads, raw), read(heads, raw)] == expected
    assert expected[0].chunked


KNOWN = answer(b"Date: a", JSON, b"Content-Length: 12", b"Server: s")
OTHERS = {
    "another status": answer(b"Date: a", JSON, b"Content-Length: 12", b"Server: s", line=b"HTTP/1.1 304 Not Modified"),
    "another version": answer(b"Date: a", JSON, b"Content-Length: 12", b"Server: s", line=b"HTTP/1.0 200 OK"),
    "the status line further down": answer(OK, JSON, b"Content-Length: 12", b"Server: s", line=b"X: y"),
    "a coding of the transfer": answer(b"Transfer-Encoding: chunked", JSON, b"Content-Length: 12", b"Server: s"),
    "a connection that closes": answer(b"Connection: close", JSON, b"Content-Length: 12", b"Server: s"),
    "a field that ends here": answer(b"Connection: x-mine", JSON, b"Content-Length: 12", b"X-Mine: 1"),
    "a coding of the content": answer(b"content-ENCODING: gzip", JSON, b"Content-Length: 12", b"Server: s"),
    "two types": answer(b"Content-Type: text/plain", JSON, b"Content-Length: 12", b"Server: s"),
    "one type twice": answer(JSON, JSON, b"Content-Length: 12", b"Server: s"),
    "no type": answer(b"Date: a", b"X: y", b"Content-Length: 12", b"Server: s"),
    "two lengths": answer(b"Content-Length: 12", JSON, b"Content-Length: 12", b"Server: s"),
    "two different lengths": answer(b"Content-Length: 13", JSON, b"Content-Length: 12", b"Server: s"),
    "a length elsewhere": answer(b"Date: a", b"Content-Length: 12", JSON, b"Server: s"),
    "a signed length": answer(b"Date: a", JSON, b"Content-Length: +12", b"Server: s"),
    "a length in other digits": answer(b"Date: a", JSON, "Content-Length: \u0663".encode(), b"Server: s"),
    "no length": answer(b"Date: a", JSON, b"Content-Length: ", b"Server: s"),
    "a length past counting": answer(b"Date: a", JSON, b"Content-Length: " + b"1" * 16, b"Server: s"),
    "a folded field": answer(b" Date: a", JSON, b"Content-Length: 12", b"Server: s"),
    "a bare LF": answer(b"Date: a\nTransfer-Encoding: chunked", JSON, b"Content-Length: 12", b"Server: s"),
    "a bare CR": answer(b"Date: a\rX: b", JSON, b"Content-Length: 12", b"Server: s"),
    "a NUL": answer(b"Date: \0", JSON, b"Content-Length: 12", b"Server: s"),
    "no colon": answer(b"Date", JSON, b"Content-Length: 12", b"Server: s"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHERS)
def test_what_could_make_a_difference_is_read_as_the_reader_reads_it(name):
    heads = AnswerHeads()
    for raw in (
        KNOWN,
        KNOWN.replace(b"Date: a", b"Date: b"),
        OTHERS[name],
        KNOWN,
        OTHERS[name],
        OTHERS[name],
    ):
        assert outcome(partial(read, heads), raw) == outcome(parse_response, raw)


LINES = st.sampled_from(
    [
        JSON, b"content-type: application/json", b"Content-Type: text/event-stream", b"Content-Length: 1", b"Content-Length: 22",
        b"content-length:  3", b"Content-Length: 4 ", b"Transfer-Encoding: chunked", b"Connection: keep-alive", b"Connection: close",
        b"Connection: date", b"Keep-Alive: timeout=5", b"Content-Encoding: gzip", b"Content-Encoding:", b"Date: a", b"Date: b", b"Server: s",
        b"Server: s\n", b"\tServer: s", b"Server", OK, b"X: HTTP/1.1 200 OK",
    ]
)  # fmt: skip
HEADS = st.lists(
    st.builds(
        lambda line, fields: answer(*fields, line=line),
        st.sampled_from([OK, OK, OK, b"HTTP/1.0 200 OK", b"HTTP/1.1 204 No Content", b"X: y"]),
        st.lists(LINES, min_size=2, max_size=4),
    ),
    max_size=12,
)


@given(HEADS)
@example(
    [answer(JSON, b"Date: a"), answer(b"Content-Type: text/plain", b"Date: a"), answer(b"X: y", b"Date: a")]
)
def test_heads_in_any_order_read_as_the_reader_reads_each(raws):
    heads = AnswerHeads()
    for raw in raws:
        assert outcome(partial(read, heads), raw) == outcome(parse_response, raw)


@given(st.binary(max_size=30), st.integers(0, 90), st.integers(0, 9))
def test_a_change_anywhere_in_a_known_head_reads_as_the_reader_reads_it(change, at, cut):
    heads = AnswerHeads()
    read(heads, KNOWN)
    read(heads, KNOWN.replace(b"Date: a", b"Date: b"))
    raw = KNOWN[:at] + change + KNOWN[at + cut :]
    raw = raw[: raw.find(b"\r\n\r\n") + 4] if b"\r\n\r\n" in raw else KNOWN
    assert outcome(partial(read, heads), raw) == outcome(parse_response, raw)


def test_a_head_too_long_to_be_worth_it_is_read_and_not_remembered():
    heads = AnswerHeads()
    raw = answer(JSON, b"X: " + b"x" * familiar_heads.MAX_REMEMBERED)
    assert read(heads, raw) == read(heads, raw) == parse_response(raw)
    assert not heads._likenesses
