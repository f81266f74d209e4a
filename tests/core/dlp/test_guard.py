"""A request leaves without what must not, and nothing of it changes but the contents of the strings that held it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

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


def test_only_keys_and_only_markers_are_numbered() -> None:
    body = {"content": [EMAIL, EMAIL, {"type": "tool_use", "input": {EMAIL: 1, KEY: 2}}]}
    text, again, block = json.loads(guard().scrub(json.dumps(body).encode()).body)["content"]
    assert text == again == "[REDACTED:email]"
    token = Vaults(b"k").of("s").token
    done = json.loads(guard("tokenize").scrub(json.dumps(body).encode(), token).body)
    assert done["content"][2]["input"] == {token(EMAIL, "email"): 1, token(KEY, "api_key"): 2}
    assert list(block["input"]) == ["[REDACTED:email]", "[REDACTED:api_key] 2"]


def test_what_only_begins_like_arguments_is_text_and_counted_once() -> None:
    call = {"function": {"arguments": json.dumps({"to": EMAIL})[:-1]}}
    done = guard().scrub(json.dumps({"messages": [{"tool_calls": [call]}]}).encode())
    assert EMAIL.encode() not in done.body
    assert done.counts == {"email": 1}


def test_a_pattern_of_ones_own_may_be_short_without_a_name_to_show_and_find_nothing() -> None:
    made = guard(custom_patterns=(CustomPattern("desk", "[A-Z][0-9]"), CustomPattern("none", "z*")))
    assert json.loads(made.scrub(b'{"content":"at B7"}').body) == {"content": "at [REDACTED:desk]"}


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


def test_what_stands_behind_a_token_is_found() -> None:
    vault = Vaults(b"k").of("s")
    first, second = vault.token(EMAIL, "email"), vault.token(KEY, "api_key")
    body = json.dumps({"content": f"{first}, and {KEY}, {first}"}).encode()
    done = guard("tokenize").scrub(body, vault.token)
    assert json.loads(done.body) == {"content": f"{first}, and {second}, {first}"}


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


SECRETS = [EMAIL, KEY, "4111111111111111", "123-45-6789", "DE89370400440532013000", "+14155550123"]


@pytest.mark.parametrize("secret", SECRETS)
@pytest.mark.parametrize(
    "made",
    [
        lambda secret: json.dumps({"stdout": f"a\n{secret}\nb"}),
        lambda secret: repr({"stdout": f"a\t{secret}\tb"}),
        lambda secret: json.dumps({"text": json.dumps({"stdout": f"a\n{secret}\nb"})}),
        lambda secret: json.dumps({"a": secret}).replace("@", "\\u0040").replace("+", "\\u002B"),
        lambda secret: f"http://h/?q={quote(secret, safe='')}&z",
        lambda secret: f"= \x1b[01;31m{secret[:3]}\x1b[m\x1b[K{secret[3:]}",
        lambda secret: f"data:;base64, {secret}",
    ],
)
def test_what_a_tool_escaped_is_found_whatever_stands_before_it(made: Any, secret: str) -> None:
    content = made(secret)
    done = guard().scrub(json.dumps({"messages": [{"content": content}]}).encode())
    assert sum(done.counts.values()) == 1
    left = json.loads(done.body)["messages"][0]["content"]
    assert "[REDACTED:" in left
    assert secret[4:] not in left.replace("%40", "@")


def test_json_in_a_text_is_json_afterwards() -> None:
    content = json.dumps({"stdout": f"a\n{EMAIL}\n{KEY}"})
    done = guard().scrub(json.dumps({"content": content}).encode())
    assert json.loads(json.loads(done.body)["content"]) == {
        "stdout": "a\n[REDACTED:email]\n[REDACTED:api_key]"
    }


def test_a_token_stands_for_the_value_and_not_for_the_escape_before_it() -> None:
    vault = Vaults(b"k").of("s")
    body = json.dumps({"content": json.dumps({"stdout": f"a\n{EMAIL}"})}).encode()
    left = guard("tokenize").scrub(body, vault.token).body.decode()
    assert EMAIL in vault.restored(left)
    assert vault.token(EMAIL, "email") in left


def test_events_mask_what_is_escaped() -> None:
    assert guard().masked({"a": f"x\\n{KEY}"}) == {"a": "x\\n[REDACTED:api_key]"}
