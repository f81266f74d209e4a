"""A token stands for one value in one session: the same each time, bounded in number, and of no use to anybody else."""

from __future__ import annotations

import pytest

from agentsh_net.core.dlp import tokens
from agentsh_net.core.dlp.tokens import TOKEN, Vaults, begun


def test_a_value_has_one_token_and_comes_back_in_its_session_only() -> None:
    vaults = Vaults(b"key")
    token = vaults.of("a").token("alice@example.com", "email")
    assert TOKEN.fullmatch(token)
    assert vaults.of("a").token("alice@example.com", "email") == token
    assert vaults.of("a").restored(f"<{token}>{token}") == "<alice@example.com>alice@example.com"
    assert vaults.of("b").restored(token) == token
    assert vaults.of("b").token("alice@example.com", "email") != token
    assert Vaults(b"other").of("a").token("alice@example.com", "email") != token


def test_workers_of_one_key_make_the_same_tokens() -> None:
    assert Vaults(b"key").of("a").token("v", "phone") == Vaults(b"key").of("a").token("v", "phone")


@pytest.mark.parametrize("kind", ["api_key", "credit_card", "a-very.long_name-of-a-pattern", "\u00e9", "ssn"])
def test_a_token_is_plain_letters_whatever_the_kind(kind: str) -> None:
    token = Vaults(b"key").of("s").token("v", kind)
    assert TOKEN.fullmatch(token)
    assert len(token) <= tokens.LONGEST


def test_a_token_says_what_kind_of_thing_it_stands_for() -> None:
    vault = Vaults(b"key").of("s")
    words = [vault.token("v", kind).split("_")[1] for kind in ("api_key", "ssn", "my.pattern", "\u00e9")]
    assert words == ["KEY", "SSN", "MYPATTERN", "VALUE"]


def test_what_may_begin_a_token_is_known_at_every_cut() -> None:
    token = Vaults(b"key").of("s").token("v", "email")
    assert [begun("see " + token[:n]) for n in range(len(token))] == list(range(len(token)))
    assert begun("see " + token) == 0
    assert begun("DLP_email") == begun("") == begun("xyz") == 0


def test_memory_is_bounded_the_oldest_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokens, "MAX_VALUES", 3)
    monkeypatch.setattr(tokens, "MAX_SESSIONS", 2)
    vaults = Vaults(b"key")
    made = [vaults.of("a").token(f"value {n}", "ssn") for n in range(5)]
    assert [vaults.of("a").restored(t) == t for t in made] == [True, True, False, False, False]
    vaults.of("a").token("value 2", "ssn")  # in use: others are forgotten before it
    vaults.of("a").token("value 5", "ssn")
    assert [vaults.of("a").knows(token) for token in made[2:]] == [True, False, True]
    vaults.of("b")
    vaults.of("a")
    vaults.of("c")
    assert vaults.of("a").knows(made[-1])
    vaults.of("d")
    vaults.of("e")
    assert not vaults.of("a").knows(made[-1])
    monkeypatch.setattr(tokens, "MAX_BYTES", 10)
    vault = vaults.of("f")
    assert [vault.knows(vault.token("123456", "x")), vault.knows(vault.token("abcdef", "x")), len(vault)] == [
        True,
        True,
        1,
    ]


def test_a_value_that_is_too_long_to_keep_does_not_come_back() -> None:
    vault = Vaults(b"key").of("s")
    token = vault.token("x" * 100_000, "api_key")
    assert vault.restored(token) == token
