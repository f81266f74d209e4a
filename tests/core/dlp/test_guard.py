"""A request leaves without what must not, and nothing of it changes but the contents of the strings that held it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentsh_net.core.configuration.settings import CustomPattern, Dlp
from agentsh_net.core.dlp import guard as guards
from agentsh_net.core.dlp.guard import Guard
from agentsh_net.core.dlp.tokens import Vaults
from agentsh_net.core.errors import ProtocolError

EMAIL, KEY = "alice@example.com", "AKIAIOSFODNN7EXAMPLE"


def guard(mode: str = "redact", **more: Any) -> Guard:
    made = Guard.of(Dlp(mode=mode, **more))
    assert made is not None
    return made


def test_off_there_is_no_guard() -> None:
    assert Guard.of(Dlp()) is None


def test_only_what_was_found_changes_to_the_byte() -> None:
    body = b'{ "id":123456789012345678901, "a":1.50,"messages":[{"content":"\\u0041 <%s>\\n\\/ \xc3\xa9"}], "a":null}\n'
    done = guard().scrub(body % EMAIL.encode())
    assert done.body == body % b"[REDACTED:email]"
    assert done.counts == {"email": 1}


def test_escapes_hide_nothing() -> None:
    hidden = "".join(f"\\u{ord(c):04x}" for c in EMAIL)
    assert guard().scrub(f'{{"content":"{hidden}"}}'.encode()).body == b'{"content":"[REDACTED:email]"}'


def test_arguments_in_a_string_are_json_of_their_own() -> None:
    inner = json.dumps({"to": EMAIL, "n": 12345678901234567890}).replace("@", "\\u0040")
    call = {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": inner}}]}
    done = json.loads(guard().scrub(json.dumps({"messages": [call]}).encode()).body)
    arguments = done["messages"][0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"to": "[REDACTED:email]", "n": 12345678901234567890}


def test_two_keys_of_an_object_stay_two() -> None:
    body = json.dumps({"content": [{"type": "tool_use", "input": {EMAIL: 1, "b" + EMAIL: 2}}]}).encode()
    (block,) = json.loads(guard().scrub(body).body)["content"]
    assert block["input"] == {"[REDACTED:email]": 1, "[REDACTED:email] 2": 2}


def test_a_pattern_that_is_switched_off_is_not_searched_for() -> None:
    body = json.dumps({"content": f"{EMAIL} {KEY}"}).encode()
    done = guard(patterns={"email": False}).scrub(body)
    assert json.loads(done.body) == {"content": f"{EMAIL} [REDACTED:api_key]"}


def test_a_pattern_of_ones_own_is_found_anywhere_in_a_long_text() -> None:
    made = guard(custom_patterns=(CustomPattern("badge", "B-[0-9]{6}", 'a "badge"'),))
    words = "lorem " * 3000
    body = json.dumps({"content": f"{words}b-123456{words}B-654321 B-111111"}).encode()
    done = made.scrub(body)
    mark = '[REDACTED:a "badge"]'
    assert json.loads(done.body) == {"content": f"{words}{mark}{words}{mark} {mark}"}
    assert done.counts == {"badge": 3}


def test_what_is_too_long_for_the_patterns_is_unread_and_not_passed_as_clean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guards, "MAX_STEPS", 100)
    made = guard(custom_patterns=(CustomPattern("badge", "B-[0-9]{6}"),))
    with pytest.raises(ProtocolError, match="too long"):
        made.scrub(json.dumps({"content": "x " * 500}).encode())


@pytest.mark.parametrize("body", [b'{"a', b"[}", b"\xff\xfe[\x00]\x00", b'{"a":"b'])
def test_what_cannot_be_read_is_told(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        guard().scrub(body)


def test_overlapping_finds_leave_nothing_of_either() -> None:
    made = guard(custom_patterns=(CustomPattern("host", "example[.]com/x"),))
    done = made.scrub(json.dumps({"content": f"{EMAIL}/x"}).encode())
    assert json.loads(done.body) == {"content": "[REDACTED:email]"}


def test_tokens_are_no_finds() -> None:
    vault = Vaults(b"k").of("s")
    made = guard("tokenize", custom_patterns=(CustomPattern("upper", "[A-Z]{5}"),))
    once = made.scrub(json.dumps({"content": f"to {EMAIL}"}).encode(), vault.token)
    assert made.scrub(once.body, vault.token) == (once.body, {})


def test_the_input_of_an_event_is_masked_as_deep_as_it_goes() -> None:
    value = {"to": [EMAIL, 1, None], KEY: {"x": KEY}}
    marked = {"to": ["[REDACTED:email]", 1, None], "[REDACTED:api_key]": {"x": "[REDACTED:api_key]"}}
    assert guard().masked(value) == marked
    assert guard().masked(EMAIL) == "[REDACTED:email]"
    deep: Any = EMAIL
    for _ in range(90):
        deep = [deep]
    assert EMAIL not in str(guard().masked(deep))


WORDS = st.sampled_from(
    [
        EMAIL,
        KEY,
        "plain",
        'q"\\',
        "\u00e9\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"),
        "4111 1111 1111 1111",
        "DE89370400440532013000",
    ]
)
STRINGS = st.lists(WORDS | st.text(max_size=4), max_size=5).map(" ".join)
VALUES = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False) | STRINGS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["content", "text", "type", "input", "a"]), inner)
    ),
    max_leaves=10,
)


def shape(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return (
        [shape(item) for item in value]
        if isinstance(value, list)
        else ""
        if isinstance(value, str)
        else value
    )


@settings(deadline=None)  # a busy machine is no failure
@given(VALUES, st.booleans())
def test_redaction_changes_nothing_but_the_contents_of_strings(value: Any, ascii_only: bool) -> None:
    body = json.dumps({"content": value}, ensure_ascii=ascii_only).encode()
    done = guard().scrub(body)
    assert shape(json.loads(done.body)) == shape(json.loads(body))
    assert done.counts or done.body == body
    assert guard().scrub(done.body) == (done.body, {})
