"""Each leaf takes exactly what it says it takes, in bounds, and returns it in the unit it says."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.configuration import scalars
from agentsh_net.core.configuration.schema import At, Reader, Refused
from agentsh_net.core.errors import Problem

REFUSED = object()


def read(reader: Reader[Any], value: Any, **names: dict[str, str]) -> Any:
    problems: list[Problem] = []
    try:
        result = reader(At("here", problems, names=names), value)
    except Refused:
        assert len(problems) == 1
        return REFUSED
    assert not problems
    return result


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("250ms", 0.25),
        ("30s", 30.0),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("1d", 86400.0),
        ("1.5s", 1.5),
        (" 2 h ", 7200.0),
        (7, 7.0),
        (0.1, 0.1),
    ],
)
def test_a_duration_is_in_seconds(text: Any, seconds: float) -> None:
    assert read(scalars.duration(), text) == pytest.approx(seconds, rel=1e-12)


@pytest.mark.parametrize(
    "value",
    [
        "",
        "5",
        "s",
        "-1s",
        "1w",
        "1h30m",
        "1e3s",
        "٣s",
        "1 0s",
        -1,
        0,
        "0s",
        True,
        None,
        [],
        float("nan"),
        float("inf"),
        10**400,
        "999999999999d",
        "0" * 13 + "s",
    ],
    ids=str,
)
def test_what_is_no_duration_is_refused(value: Any) -> None:
    assert read(scalars.duration(), value) is REFUSED


def test_no_time_at_all_is_a_duration_only_where_it_has_a_meaning() -> None:
    assert read(scalars.duration(zero=True), 0) == 0.0
    assert read(scalars.duration(zero=True), "0ms") == 0.0
    assert read(scalars.duration(zero=True), -1) is REFUSED


@given(st.integers(1, 36_500), st.sampled_from(sorted(scalars.SECONDS)))
def test_a_duration_written_in_any_unit_reads_back(count: int, unit: str) -> None:
    assert read(scalars.duration(), f"{count}{unit}") == pytest.approx(count * scalars.SECONDS[unit])


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1MiB", 1 << 20),
        ("4MiB", 4 << 20),
        ("512KiB", 512 << 10),
        ("10MB", 10**7),
        ("1kb", 1000),
        ("7B", 7),
        (99, 99),
    ],
)
def test_a_size_is_in_bytes(text: Any, count: int) -> None:
    assert read(scalars.size(1, 1 << 30), text) == count


@pytest.mark.parametrize(
    "value", ["", "1", "1.5MiB", "1TiB", "-1KB", "2GiB", 0, -5, True, 1.0, None], ids=str
)
def test_what_is_no_size_is_refused(value: Any) -> None:
    assert read(scalars.size(1, 1 << 30), value) is REFUSED


@given(st.integers(1, 1023), st.sampled_from(["B", "KB", "MB", "KiB", "MiB"]))
def test_a_size_written_in_any_unit_reads_back(count: int, unit: str) -> None:
    assert read(scalars.size(1, 1 << 30), f"{count} {unit}") == count * scalars.BYTES[unit.upper()]


@pytest.mark.parametrize("value", [0, 1, "true", "yes", None])
def test_only_true_and_false_are_flags(value: Any) -> None:
    assert read(scalars.flag, value) is REFUSED
    assert read(scalars.flag, False) is False


@pytest.mark.parametrize("value", [True, False, 0, 11, 5.0, "5", None])
def test_a_flag_or_a_fraction_is_no_whole_number(value: Any) -> None:
    assert read(scalars.integer(1, 10), value) is REFUSED
    assert read(scalars.integer(1, 10), 10) == 10


@pytest.mark.parametrize("value", [True, 0, -1, 10.5, float("nan"), float("inf"), "1", None])
def test_a_rate_is_a_finite_number_above_zero(value: Any) -> None:
    assert read(scalars.positive(10), value) is REFUSED
    assert read(scalars.positive(10), 0.5) == 0.5


def test_a_bound_is_told_with_all_its_digits() -> None:
    problems: list[Problem] = []
    with pytest.raises(Refused):
        scalars.positive(1_000_000)(At("p", problems), 0)
    assert problems[0].expected == "a number above 0, at most 1000000"


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x" * (scalars.MAX_TEXT + 1), 5, None, ["a"]])
def test_text_is_what_a_process_can_take(value: Any) -> None:
    assert read(scalars.text, value) is REFUSED


def test_a_number_where_text_belongs_is_told_to_be_quoted() -> None:
    problems: list[Problem] = []
    with pytest.raises(Refused):
        scalars.text(At("id", problems), 123)
    assert problems == [Problem("id", "the number 123", "text (quote it)")]


def test_a_word_has_something_in_it() -> None:
    assert read(scalars.word, " \t") is REFUSED
    assert read(scalars.word, " x ") == " x "


def test_one_of_a_few_words_suggests_the_one_that_was_meant() -> None:
    problems: list[Problem] = []
    with pytest.raises(Refused):
        scalars.one_of("allowlist", "denylist", "none")(At("p", problems), "Allowlst")
    assert problems[0].expected == "allowlist | denylist | none (did you mean `allowlist`?)"
    assert read(scalars.one_of("off", "on"), False) is REFUSED


@pytest.mark.parametrize("value", ["", " a", "a ", "a\nb", "a\u202eb", "a*", "a?", "[a]", "x" * 129, 5])
def test_an_id_is_printable_and_no_pattern(value: Any) -> None:
    assert read(scalars.identifier, value) is REFUSED


@pytest.mark.parametrize("value", ["fs", "io.github/x", "My Server", "bücher"])
def test_ids_that_clients_use_are_ids(value: str) -> None:
    assert read(scalars.identifier, value) == value


def test_a_reference_is_compared_folded_and_returned_as_declared() -> None:
    assert read(scalars.reference("server"), "ＷＥＢ", server={"web": "Web"}) == "Web"
    assert read(scalars.reference("server"), "other", server={"web": "Web"}) is REFUSED
    assert read(scalars.reference("server"), "web") is REFUSED


@pytest.mark.parametrize(
    ("value", "address"),
    [("127.0.0.1", "127.0.0.1"), ("::", "::"), ("2001:DB8:0::1", "2001:db8::1"), ("localhost", "localhost")],
)
def test_an_address_to_listen_on_is_a_literal(value: str, address: str) -> None:
    assert read(scalars.listen, value) == address


@pytest.mark.parametrize(
    "value", ["", "example.com", "127.1", "0x7f.0.0.1", "[::1]", "::1%eth0", "1.2.3.4:80", 0]
)
def test_a_name_is_nothing_to_listen_on(value: Any) -> None:
    assert read(scalars.listen, value) is REFUSED


def test_a_base_url_keeps_its_path_and_has_nothing_behind_it() -> None:
    assert read(scalars.base_url, "https://llm.corp/openai/v1") == "https://llm.corp/openai/v1"
    for tail in ("?", "?a=b", "#x", "#"):
        assert read(scalars.base_url, "https://llm.corp/v1" + tail) is REFUSED
    url = read(scalars.http_url, "https://mcp.corp/mcp?key=1")
    assert (url.host, url.port, url.path, url.query) == ("mcp.corp", 443, "/mcp", "key=1")


@pytest.mark.parametrize("value", ["https://a.b:8443", "vscode-webview://x1", "http://[::1]:3000"])
def test_an_origin_has_no_path(value: str) -> None:
    assert read(scalars.origin, value) == value
    assert read(scalars.origin, value + "/") is REFUSED


@pytest.mark.parametrize("value", ["x.db", "./x.db", "~/x.db", "/var/lib/", "/a\nb", "", 5])
def test_a_path_means_the_same_everywhere(value: Any) -> None:
    assert read(scalars.absolute_path, value) is REFUSED


def test_a_socket_path_fits_its_structure() -> None:
    assert read(scalars.socket_path, "/" + "x" * 106) == "/" + "x" * 106
    assert read(scalars.socket_path, "/" + "x" * 107) is REFUSED
    assert read(scalars.socket_path, "/" + "ü" * 54) is REFUSED


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b", "\x7f", "€"])
def test_a_header_carries_no_second_header(value: str) -> None:
    assert read(scalars.header_value, value) is REFUSED
    assert read(scalars.header_name, f"X-{value}") is REFUSED


def test_ordinary_headers_are_headers() -> None:
    assert read(scalars.header_value, "Bearer abc\tdef é") == "Bearer abc\tdef é"
    assert read(scalars.header_name, "X-API-Key") == "X-API-Key"
    assert read(scalars.header_name, "X Key") is REFUSED
    assert read(scalars.header_name, "") is REFUSED


@pytest.mark.parametrize("value", ["ab" * 32, "sha256:" + "AB" * 32, "SHA256:" + ":".join(["aB"] * 32)])
def test_a_fingerprint_is_written_in_three_ways_and_kept_in_one(value: str) -> None:
    assert read(scalars.fingerprint, value) == "sha256:" + "ab" * 32


@pytest.mark.parametrize(
    "value", ["ab" * 31, "ab" * 33, "sha1:" + "ab" * 20, "sha256:" + "g" * 64, ":" + "ab" * 32]
)
def test_what_is_no_fingerprint_is_refused(value: str) -> None:
    assert read(scalars.fingerprint, value) is REFUSED


@pytest.mark.parametrize("value", ["s", "v1", "mcp", "", "A", "a.b", "a/b", "-a", "x" * 65])
def test_a_provider_is_a_path_segment_that_is_not_taken(value: str) -> None:
    assert read(scalars.provider_name, value) is REFUSED
    assert read(scalars.provider_name, "my-gateway_2") == "my-gateway_2"


def test_an_environment_variable_has_a_name() -> None:
    assert read(scalars.environment_name, "NODE_ENV") == "NODE_ENV"
    assert read(scalars.environment_name, "A=B") is REFUSED
    assert read(scalars.environment_name, "") is REFUSED
