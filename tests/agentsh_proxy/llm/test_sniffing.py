"""A body is what a client could take it for by its first bytes, however few of them came at once."""

from __future__ import annotations

import gzip

import pytest
from agentsh_proxy.llm.sniffing import MAX_SNIFFED, Kind, kind_of

BODIES = [
    (b'{"a":1}', Kind.WHOLE),
    (b"\xef\xbb\xbf \r\n[1]", Kind.WHOLE),
    ('{"a":1}'.encode("utf-16"), Kind.WHOLE),
    ('{"a":1}'.encode("utf-16-le"), Kind.WHOLE),
    ('{"a":1}'.encode("utf-16-be"), Kind.WHOLE),
    ('{"a":1}'.encode("utf-32-be"), Kind.WHOLE),
    ('"text"'.encode("utf-16-le"), Kind.WHOLE),
    (b"data: 1\n\n", Kind.EVENTS),
    (b"\xef\xbb\xbfevent: x\n", Kind.EVENTS),
    (b"\n\r\n id: 1", Kind.EVENTS),
    (b"retry: 1", Kind.EVENTS),
    (b"event: x\n", Kind.EVENTS),
    (b": hello", Kind.EVENTS),
    (gzip.compress(b"data: 1"), Kind.PACKED),
    (b"\x28\xb5\x2f\xfd\x04", Kind.PACKED),
    (b"<html>", Kind.OTHER),
    (b"datum: 1", Kind.OTHER),
    (b"eve", Kind.OTHER),
    (b" \n", Kind.OTHER),
    (b"", Kind.OTHER),
]


@pytest.mark.parametrize(("body", "kind"), BODIES)
def test_a_body_is_known_by_its_beginning(body, kind):
    assert kind_of(body, last=True) is kind


@pytest.mark.parametrize(("body", "kind"), BODIES)
def test_what_a_part_of_it_is_taken_for_the_rest_never_changes(body, kind):
    found = [kind_of(body[:length], last=False) for length in range(len(body))]
    assert set(found) <= {None, kind}


def test_space_without_end_is_not_waited_for():
    assert kind_of(b" " * MAX_SNIFFED, last=False) is None
    assert kind_of(b" " * (MAX_SNIFFED + 1), last=False) is Kind.OTHER


@pytest.mark.parametrize("odd", ["\v", "\f\x1c", "\x85", "\xa0", "\u2003\u2028", "\u3000\ufeff"])
def test_space_that_clients_trim_off_hides_no_json(odd):
    assert kind_of(odd.encode() + b'{"a"', last=False) is Kind.WHOLE
    assert kind_of(b" " + odd.encode() + b" [1", last=False) is Kind.WHOLE
    assert kind_of(odd.encode(), last=False) is None
    assert kind_of("\u00fc{}".encode(), last=False) is Kind.OTHER
