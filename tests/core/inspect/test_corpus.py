"""What was held out when the detectors were tuned: recall stays where it was, and is told honestly.

First run, before any change that looked at it: 36 of 38 found (instruction 9/10, secrecy 8/8, credentials 6/6,
exfiltration 7/8, preference 6/6), 0 of 26 honest texts. Both that were missed have led to a wider pattern since.
"""

from __future__ import annotations

import poison
import pytest
from bench import detect_bench

from agentsh_net.core.inspect.contents import inspect_arguments, inspect_content
from agentsh_net.core.inspect.definitions import inspect_definition, inspect_handshake


@pytest.mark.parametrize("family", poison.HELD_OUT)
def test_recall_on_held_out_text_does_not_fall(family: str) -> None:
    texts = poison.HELD_OUT[family]
    found = [t for t in texts if inspect_definition({"name": "t", "description": t})]
    assert len(found) >= len(texts) - 1, set(texts) - set(found)


@pytest.mark.parametrize("family", ["instruction", "secrecy", "exfiltration"])
def test_results_and_instructions_are_read_by_the_same_detectors(family: str) -> None:
    for text in poison.TUNED[family]:
        assert inspect_content({"content": [{"type": "text", "text": text}]}), text
        assert inspect_handshake(text, {}), text
        assert inspect_arguments({"note": text}), text


@pytest.mark.parametrize("text", poison.HONEST)
def test_honest_results_have_no_finding(text: str) -> None:
    assert not inspect_content(
        {"content": [{"type": "text", "text": text}], "structuredContent": {"a": text}}
    )
    assert not inspect_handshake(text, {})


def test_the_table_of_the_bench_has_no_false_positive_and_every_mutation_is_found() -> None:
    """What `./dev bench detect` prints, of the sources that are here."""
    rows = {row.name: row for row in (*detect_bench.own(), detect_bench.mutations(), detect_bench.official())}
    print("\n".join(detect_bench.table(rows.values(), details=True)))
    assert rows["mutations of official tools"].missed == []
    # Known: an example in base64, the path of a kubeconfig.
    wrong = sorted(text.split("]")[0][1:] for row in rows.values() for text in row.wrong)
    assert wrong == ["'credential-path-wanted'", "'encoded-text'"]
    assert rows["definitions of 9 official servers"].honest == 92
    assert rows["poison, held out"].found >= 36


def test_recall_on_the_manners_of_attack_does_not_fall() -> None:
    """First measures, before any rule had seen the set, and before there were rules: of definitions and of results
    39 of 81 and 12 of 37; 32 of 65 (20) and 15 of 35 (12); 32 of 41 (17) and 17 of 26 (9); 11 of 28 (6) and 7 of 15 (4);
    7 of 28 (2) and 3 of 14 (1); 9 of 20 (4) and 6 of 10 (2); of the seventh set, of results alone, 5 of 14 (3 before the
    rules of what is addressed to readers and of errands); of the eighth 43 of 90, of the ninth 4 of 30, of the tenth 9 of 45;
    of the eleventh 15 of 30 and 16 of 30; of the twelfth, written after its rules, 1 of 25 and 1 of 25 without them;
    of the thirteenth, written after its rules, 1 of 14 and 1 of 8 without them, 9 and 8 at first with them.
    """
    found = {row.name.partition(", ")[2]: (row.found, row.poison) for row in detect_bench.in_manners()}
    least = {
        "first look: definitions": 78,
        "first look: results": 33,
        "second look: definitions": 59,
        "second look: results": 29,
        "third look: definitions": 37,
        "third look: results": 25,
        "fourth look: definitions": 24,
        "fourth look: results": 12,
        "fifth look: definitions": 21,
        "fifth look: results": 9,
        "sixth look: definitions": 14,
        "sixth look: results": 7,
        "seventh look: results": 7,
        "eighth look: definitions": 78,
        "ninth look: definitions": 18,
        "tenth look: results": 28,
        "eleventh look: definitions": 20,
        "eleventh look: results": 22,
        "twelfth look: definitions": 20,
        "twelfth look: results": 18,
        "thirteenth look: definitions": 14,
        "thirteenth look: results": 8,
    }
    assert {title: counts for title, counts in found.items() if counts[0] < least[title]} == {}
