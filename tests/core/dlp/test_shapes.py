"""Personal data and credentials are found by their shapes and check digits, what only looks like them is not, in linear time."""

from __future__ import annotations

import time

import pytest

from agentsh_net.core.dlp.shapes import BUILT_IN

FOUND = {
    "email": [
        ("write to alice.o'brien+x@mail.example.co.uk.", "alice.o'brien+x@mail.example.co.uk"),
        ("<bob@example.com>", "bob@example.com"),
        ("https://user:secret@host.example.com/", "secret@host.example.com"),
        ("\u738b@\u4f8b\u5b50.com", "\u738b@\u4f8b\u5b50.com"),
    ],
    "phone": [
        ("call +49 171 1234567 now", "+49 171 1234567"),
        ("+14155552671", "+14155552671"),
        ("(415) 555-2671", "(415) 555-2671"),
        ("1-415-555-2671", "1-415-555-2671"),
        ("tel:415.555.2671", "415.555.2671"),
    ],
    "credit_card": [
        ("4111 1111 1111 1111", "4111 1111 1111 1111"),
        ("no 4111-1111-1111-1111 12/27", "4111-1111-1111-1111"),
        ("card 4111 1111 1111 1111 12", "4111 1111 1111 1111"),
        ("99 4111 1111 1111 1111", "4111 1111 1111 1111"),
        ("378282246310005;", "378282246310005"),
        ("5555555555554444", "5555555555554444"),
        ("2223003122003222", "2223003122003222"),
        ("6011111111111117", "6011111111111117"),
        ("4111\u00a01111\u00a01111\u00a01111", "4111\u00a01111\u00a01111\u00a01111"),
    ],
    "ssn": [("ssn 123-45-6789.", "123-45-6789"), ("123 45 6789", "123 45 6789")],
    "iban": [
        ("DE89 3704 0044 0532 0130 00 Berlin", "DE89 3704 0044 0532 0130 00"),
        ("iban:GB82WEST12345698765432", "GB82WEST12345698765432"),
        ("NO93 8601 1117 947", "NO93 8601 1117 947"),
    ],
    "api_key": [
        (f"key={key};", key)
        for key in (
            "sk-ant-api03-" + "a1" * 20,
            "sk-proj-" + "b_-2" * 10,
            "sk-" + "c3D" * 16,
            "AKIAIOSFODNN7EXAMPLE",
            "ghp_" + "d4" * 18,
            "github_pat_" + "e5_" * 20,
            "xoxb-123456789012-abcdefABCDEF",
            "AIza" + "f6-_x" * 7,
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
            "sk_live_" + "g7" * 12,
            "glpat-" + "h8_-" * 5,
            "ASIAIOSFODNN7EXAMPLE",
            "xapp-1-A0123456789-0123456789",
            "npm_" + "i9" * 18,
            "pypi-" + "j_-0" * 13,
            "hf_" + "k1" * 17,
            "SG." + "l2_-" * 5 + "." + "m3" * 20,
            "rk_live_" + "n4" * 12,
        )
    ]
    + [
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n",
            "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----",
        ),
        ("x -----BEGIN PRIVATE KEY-----\ncut off", "-----BEGIN PRIVATE KEY-----\ncut off"),
    ],
}

PASSED = {
    "email": ["git@github.com:org/repo.git", "Co-Authored-By: Claude <noreply@anthropic.com>", "@types/node", "a @b.com", "x@y", "@app.route"],
    "phone": ["2024-11-22 03:00:00", "1.2.3.4567", "0123456789", "192.168.100.2000", "+1", "id 4155552671", "x+14155552671", "1.+14155552671", "++14155552671"],
    "credit_card": ["4111 1111 1111 1112", "1732244400000000", "0.4111111111111111", "a4111111111111111", "9" * 40, "994111111111111111", "4111111111111111a", "4111111111111111_x", "1732244400000003"],
    "ssn": ["000-12-3456", "666-12-3456", "912-12-3456", "123-00-4567", "123-45-0000", "123-45-67890", "1123-45-6789", "123-45 6789"],
    "iban": ["DE89 3704 0044 0532 0130 01", "DE89", "ZZ89370400440532013000", "xDE89370400440532013000", "DE89370400440532013000x", "DE353704", "DE89 3704 0044 0532 0130 \uff10\uff10"],
    "api_key": ["task-list-of-things-to-do-next-week-at-work", "sk-short", "AKIAshort", "eyJhbGciOi", "BEGIN PRIVATE KEY", "ghp_x"],
}  # fmt: skip


@pytest.mark.parametrize(("kind", "text", "value"), [(k, t, v) for k, rows in FOUND.items() for t, v in rows])
def test_a_value_is_found_where_it_stands(kind: str, text: str, value: str) -> None:
    (span,) = BUILT_IN[kind](text)
    assert text[slice(*span)] == value


@pytest.mark.parametrize(("kind", "text"), [(k, t) for k, rows in PASSED.items() for t in rows])
def test_what_only_looks_like_one_is_passed(kind: str, text: str) -> None:
    assert list(BUILT_IN[kind](text)) == []


@pytest.mark.parametrize(
    "piece",
    [
        "eyJ",
        "sk-",
        "4 ",
        "1",
        "a@",
        "@a.",
        "DE89 ",
        "+1 ",
        "(2",
        "-----BEGIN PRIVATE KEY-----",
        "gh",
        "xoxb-",
    ],
)
def test_no_text_makes_a_search_slow(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    for kind, search in BUILT_IN.items():
        began = time.process_time()
        for _ in search(text):
            pass
        assert time.process_time() - began < 3, kind
