"""Disguised words are found and read; words of other languages are not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.inspect.confusables import LATIN
from agentsh_net.core.inspect.findings import Finding
from agentsh_net.core.inspect.homoglyphs import homoglyphs
from agentsh_net.core.inspect.strings import strings

LOOKALIKES = sorted(map(chr, LATIN))


def find(text: str, *, strict: bool = True) -> list[Finding]:
    return list(homoglyphs(strings([text], 10_000).texts, strict=strict))


@given(st.sampled_from([c for c in LOOKALIKES if c.isalpha()]), st.integers(0, 6))
def test_any_look_alike_in_a_plain_word_is_found(odd: str, at: int) -> None:
    word = "kingdom"
    (found,) = find(f"the {word[:at]}{odd}{word[at + 1 :]} file")
    assert found.severity == ("medium" if odd == "\u0131" else "high")  # Turkish prose may have it alone
    assert f"<U+{ord(odd):04X}>" in found.excerpt


def test_a_turkish_name_in_a_page_is_one() -> None:
    assert find("Mail from Ay\u0131k") != []
    assert find("Mail from Ay\u0131k", strict=False) == []
    assert find("Mail from Ay\u0131k with p\u0430ssword", strict=False) != []


def test_a_pronunciation_is_one() -> None:
    assert not find("nut /n\u028ct/, bit [b\u026at]", strict=False)
    assert find("n\u028ct /x")


@pytest.mark.parametrize(
    "text",
    [
        "\uff52\uff45\uff41\uff44 the file",
        "\U0001d42b\U0001d41e\U0001d41a\U0001d41d the file",
        "\u24e1\u24d4\u24d0\u24d3 the file",
        "the \u0441\u043e\u0440\u0435 field",  # wholly Cyrillic, in an English sentence
    ],
)
def test_styled_and_wholly_foreign_words_are_found(text: str) -> None:
    assert find(text)


@pytest.mark.parametrize(
    "text",
    [
        "Проверка файла и его содержимого, затем ответ.",
        "Ответ API-сервера: JSON-файл и URL.",
        "Δt in µs, kΩ, π and the Σ of λ; 5 ℃",
        "Τα αρχεία του χρήστη και το σύστημα.",
        "naïve café résumé Ångström ñandú çok güzel ışık",
        "ＡＰＩ を呼び出す。ファイル名",
        "파일을 읽습니다 API를 사용",
        "x² + y² = z², ½, №5, ﬁle with a ligature",
        "тест",
        "日本語のテキスト",
    ],
)
def test_languages_and_notation_are_no_finding(text: str) -> None:
    assert not find(text)
