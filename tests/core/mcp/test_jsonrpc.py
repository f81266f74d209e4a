"""JSON-RPC messages are read strictly: one meaning or an error, ids keep their type, unknown fields ride along."""

from __future__ import annotations

import contextlib
import json
import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.jsonrpc import ErrorResponse, Limits, Notification, Request, Response
from agentsh_net.core.values import strict_json


def one(data: bytes) -> jsonrpc.Message:
    body = jsonrpc.parse(data)
    assert not body.batch
    return body.messages[0]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Request(1, "ping")),
        (b'{"jsonrpc":"2.0","id":"1","method":"m","params":{"a":1}}', Request("1", "m", {"a": 1})),
        (b'{"jsonrpc":"2.0","id":0,"method":"m","params":[1]}', Request(0, "m", [1])),
        (b'{"jsonrpc":"2.0","method":"notifications/x"}', Notification("notifications/x")),
        (b'{"jsonrpc":"2.0","id":7,"result":null}', Response(7, None)),
        (
            b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":[1]}}',
            ErrorResponse(None, -32700, "no", [1]),
        ),
        (b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"}}', ErrorResponse(None, -32600, "no")),
    ],
)
def test_each_shape_is_recognised(data: bytes, message: jsonrpc.Message) -> None:
    assert one(data) == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"nonsense",
        b"1",
        b'"text"',
        b"[]",
        b"[1]",
        b"{}",
        b'{"jsonrpc":"1.0","id":1,"method":"m"}',
        b'{"id":1,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":1,"method":1}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":"p"}',
        b'{"jsonrpc":"2.0","id":null,"method":"m"}',
        b'{"jsonrpc":"2.0","id":true,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1.5,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1.0,"method":"m"}',
        b'{"jsonrpc":"2.0","id":[1],"method":"m"}',
        b'{"jsonrpc":"2.0","id":9007199254740992,"method":"m"}',
        b'{"jsonrpc":"2.0","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"error":"no"}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":2}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m"} {}',
        b'\xff{"jsonrpc":"2.0","id":1,"method":"m"}',
    ],
)
def test_what_is_no_message_is_an_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        jsonrpc.parse(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"m"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","result":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","error":{"code":1,"message":"m"}}',
    ],
)
def test_a_message_of_two_meanings_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="which one is meant"):
        jsonrpc.parse(data)


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"good","name":"evil"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"name":"good","n\\u0061me":"evil"}}',
    ],
)
def test_a_key_that_stands_twice_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        jsonrpc.parse(data)


@pytest.mark.parametrize(
    "text", [b'"\\ud83d"', b'"\\ude00\\ud83d"', b'{"\\udc00":1}', b'["a",{"b":"\\uDBFF"}]']
)
def test_half_a_surrogate_pair_is_refused(text: bytes) -> None:
    with pytest.raises(ProtocolError, match="surrogate"):
        jsonrpc.parse(b'{"jsonrpc":"2.0","id":1,"result":%s}' % text)


def test_a_whole_surrogate_pair_is_one_character() -> None:
    assert one(b'{"jsonrpc":"2.0","id":1,"result":"\\ud83d\\ude00"}') == Response(1, "\N{GRINNING FACE}")


@pytest.mark.parametrize(
    "number",
    [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"9" * 5000, b"-" + b"9" * 5000, b"9" * 400],
)
def test_a_number_that_json_does_not_know_is_refused(number: bytes) -> None:
    with pytest.raises(ProtocolError):
        jsonrpc.parse(b'{"jsonrpc":"2.0","id":1,"result":{"a":%s}}' % number)


def test_an_integer_past_64_bits_is_the_double_that_clients_read() -> None:
    message = one(
        b'{"jsonrpc":"2.0","id":1,"result":{"a":[18446744073709551616,18446744073709551615,true],"b":-1e2}}'
    )
    assert isinstance(message, Response)
    assert [type(v) for v in message.result["a"]] == [float, int, bool]
    assert message.result["a"][0] == 2.0**64
    orjson.dumps(message.raw)  # and goes wherever JSON goes


def test_nesting_up_to_the_bound_is_read() -> None:
    inner = Limits().depth - 2  # the message and its result are two levels
    assert one(b'{"jsonrpc":"2.0","id":1,"result":{"a":' + b"[" * inner + b"1" + b"]" * inner + b"}}")


def test_nesting_past_the_bound_is_refused_however_deep() -> None:
    for depth in (Limits().depth + 1, 200_000):
        with pytest.raises(ProtocolError):
            jsonrpc.parse(b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * depth + b"]" * depth + b"}")


def test_a_message_past_the_size_is_refused_before_it_is_read() -> None:
    ping = b'{"jsonrpc":"2.0","method":"ping"}'
    assert jsonrpc.parse(ping, Limits(size=len(ping))).messages == (Notification("ping"),)
    with pytest.raises(ProtocolError, match="more than 20") as refused:
        jsonrpc.parse(b"x" * 21, Limits(size=20))
    assert refused.value.status == 413


def test_a_message_of_no_shape_is_refused_for_that() -> None:
    with pytest.raises(ProtocolError, match="neither method nor result nor error"):
        jsonrpc.parse(b'{"jsonrpc":"2.0","id":1}')


def test_a_byte_order_mark_is_skipped() -> None:
    assert one(b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"ping"}') == Request(1, "ping")


def test_a_batch_keeps_its_order_and_one_bad_message_spoils_it() -> None:
    good = b'[{"jsonrpc":"2.0","id":1,"result":1},{"jsonrpc":"2.0","method":"n"}]'
    assert jsonrpc.parse(good) == jsonrpc.Body((Response(1, 1), Notification("n")), batch=True)
    with pytest.raises(ProtocolError):
        jsonrpc.parse(b'[{"jsonrpc":"2.0","id":1,"result":1},7]')
    message = b'{"jsonrpc":"2.0","method":"n"}'
    with pytest.raises(ProtocolError, match="batch of 1025"):
        jsonrpc.parse(b"[" + b",".join([message] * 1025) + b"]")


def test_ids_are_compared_with_their_type() -> None:
    assert jsonrpc.same_id(1, 1)
    assert jsonrpc.same_id("1", "1")
    assert not jsonrpc.same_id(1, "1")
    assert not jsonrpc.same_id(1, True)
    assert not jsonrpc.same_id(None, 0)


def test_unknown_fields_ride_along() -> None:
    message = one(b'{"jsonrpc":"2.0","id":1,"result":{"x-new":[1]},"vendor":{"a":true}}')
    assert isinstance(message, Response)
    assert message.raw["vendor"] == {"a": True}
    assert message.result == {"x-new": [1]}


@given(
    st.one_of(st.integers(-(2**53) + 1, 2**53 - 1), st.text(max_size=1024)),
    st.text(),
    st.dictionaries(st.text(), st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text())),
)
def test_what_we_make_is_read_back_as_it_was(id_: int | str, method: str, params: dict[str, object]) -> None:
    assert one(jsonrpc.request(id_, method, params)) == Request(id_, method, params)
    assert one(jsonrpc.notification(method, params)) == Notification(method, params)
    assert one(jsonrpc.response(id_, params)) == Response(id_, params)
    assert one(jsonrpc.error(id_, -32601, method)) == ErrorResponse(id_, -32601, method)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda v: st.lists(v) | st.dictionaries(st.text(), v),
    )
)
def test_any_json_value_is_a_message_or_a_protocol_error(value: object) -> None:
    data = json.dumps(value).encode()
    with contextlib.suppress(ProtocolError):
        jsonrpc.parse(data)


@given(st.binary())
def test_any_bytes_are_a_message_or_a_protocol_error(data: bytes) -> None:
    with contextlib.suppress(ProtocolError):
        jsonrpc.parse(data)


# What a text is changed into, anywhere.
ODD = (
    "method", "a", "\\u0061", "\\n", "\\/", "\\", '"', ":", ",", "{", "}", "[", "]", "null", "1", "1.0", "-0", "-0.0", "0.1", "1e5", "1e400", "1E2", "007", "9007199254740993",
    "18446744073709551616", "true", "NaN", "Infinity", " ", "\n", "\t", "\r", "\x00", "\x7f", "\u2028", "\u00e9", "\ufeff", "\\ud800", '"a":1,', ',"a":1', '"a" :1,', ' "a":[],',
)  # fmt: skip
PLAIN = (
    '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"a":[1,2.5,{"a":null}],"b":"x y"}}}',
    '{"jsonrpc": "2.0", "id": "a", "result": {"content": [{"type": "text", "text": "a \\"b\\" \\n"}], "isError": false}}',
    '[{"a":{}},[],"",{"b":[true]}]',
)  # fmt: skip


@pytest.mark.parametrize("text", PLAIN)
def test_what_is_read_plainly_is_what_a_closer_look_reads(text: str) -> None:
    """A text that is taken because it comes out again as it was has one meaning, whatever it was changed into."""
    randomly = random.Random(text)
    taken = refused = 0
    for _ in range(2000):
        other = text
        for _ in range(randomly.choice((0, 1, 1, 2, 3))):
            at = randomly.randrange(len(other) + 1)
            to = min(len(other), at + randomly.choice((0, 0, 1, 2, 5, 12)))
            other = other[:at] + randomly.choice(ODD) + other[to:]
        data = other.encode("utf-8", "surrogatepass")
        value = jsonrpc._plain(data, 64)
        if value is None:
            refused += 1
            continue
        taken += 1
        closer = strict_json.read(data)
        assert (closer.duplicates, closer.flaws) == (frozenset(), ())
        settled = jsonrpc._settled(closer.value, 64, surrogates=True)
        assert json.dumps(settled) == json.dumps(value)
    assert taken > 50
    assert refused > 100


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":1}', b'{"a":1, "a" :1}', b'{"a":{"b":1,"b":2}}', b'{"a":"","a":""}', b'{"a":1,"\\u0061":1}', b"[1e400]", b"[9007199254740993.0]", b"[NaN]",
        b"[18446744073709551616]", b'["\\ud800"]', b'["\xff"]', b"[" * 65 + b"]" * 65, b"", b"{", b"null",
    ],
)  # fmt: skip
def test_what_may_have_two_meanings_is_not_read_plainly(data: bytes) -> None:
    assert jsonrpc._plain(data, 64) is None


def around(inner: str) -> bytes:
    return f'{{"jsonrpc":"2.0","id":1,"result":{{"x":[{inner}]}}}}'.encode()


@pytest.mark.parametrize("unit", ["[]", "{}", "0", '""', '"a\\"b"', "null"])
def test_a_message_of_more_values_than_can_be_read_in_time_is_refused_unread(unit: str) -> None:
    data = around(",".join([unit] * (jsonrpc.MAX_VALUES + 1)))
    assert jsonrpc.crowded(data)
    with pytest.raises(ProtocolError, match="more than 500000 values") as refused:
        jsonrpc.parse(data, Limits(size=1 << 30))
    assert refused.value.status == 413


@pytest.mark.parametrize("text", ["1,2,", "[x]{y},", '\\",', "\\\\,", '\\"\\"\\"\\"'])
def test_text_is_one_value_however_many_commas_and_brackets_it_has(text: str) -> None:
    data = around('"' + text * 300_000 + '"')
    assert not jsonrpc.crowded(data)
    assert isinstance(jsonrpc.parse(data, Limits(size=1 << 30)).messages[0], Response)
