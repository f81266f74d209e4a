"""A URL gives one host for every client that reads it, or is refused without being quoted."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.web import urls


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("http://h", "h", 80),
        ("https://h", "h", 443),
        ("HTTPS://H.Example:8443/x?y#z", "h.example", 8443),
        ("http://h:/", "h", 80),
        ("http://h.example./", "h.example", 80),
        ("http://my_service:3000/mcp", "my_service", 3000),
        ("http://bücher.example", "xn--bcher-kva.example", 80),
        ("http://ＥＸＡＭＰＬＥ.com", "example.com", 80),
        ("http://10.0.0.1", "10.0.0.1", 80),
        ("http://[2001:DB8:0::1]:81", "2001:db8::1", 81),
        ("http://1.example", "1.example", 80),
    ],
)
def test_a_url_has_one_host_and_one_port(text: str, host: str, port: int) -> None:
    url = urls.parse(text)
    assert (url.host, url.port) == (host, port)


def test_the_parts_of_a_url_are_kept() -> None:
    assert urls.parse("https://h/a/b?c=d#e") == urls.HttpUrl("https", "h", 443, "/a/b", "c=d", "e")
    assert urls.parse("https://H/").origin == ("https", "h", 443)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "no scheme"),
        ("h/x", "no scheme"),
        ("//h/x", "no scheme"),
        ("ftp://h/", "the scheme 'ftp'"),
        ("file:///etc/passwd", "no scheme"),
        ("http://", "without a host"),
        ("http:///x", "without a host"),
        ("http://:80/", "without a host"),
        ("http://u@h/", "user information"),
        ("http://u:p@h/", "user information"),
        ("http://h\\@evil/", "forbidden characters"),
        ("http://h/ x", "spaces"),
        ("http://h\t.example/", "spaces"),
        ("http://h\n/", "spaces"),
        ("http://h:x/", "cannot be read"),
        ("http://h:65536/", "cannot be read"),
        ("http://h:-1/", "cannot be read"),
        ("http://h:0/", "port 0"),
        ("http://[::1/", "cannot be read"),
        ("http://[v1.x]/", "IPv6"),
        ("http://[fe80::1%25eth0]/", "zone"),
        ("http://2130706433/", "as a number"),
        ("http://0x7f.1/", "as a number"),
        ("http://127.1/", "as a number"),
        ("http://010.0.0.1/", "as a number"),
        ("http://faß.de/", "differently"),
        ("http://a\u2044b.example/", "differently"),
        ("http://☃.example/", "differently"),
        ("http://é..example/", "IDNA"),
        ("http://a..b/", "no DNS name"),
        ("http://-a.example/", "no DNS name"),
        ("http://%65xample.com/", "no DNS name"),
        ("http://" + "a" * 64 + ".example/", "no DNS name"),
        ("http://" + "a." * 127 + "example/", "no DNS name"),
        ("http://h*.example/", "no DNS name"),
    ],
)
def test_what_clients_would_read_differently_is_refused(text: str, found: str) -> None:
    with pytest.raises(urls.UrlError) as caught:
        urls.parse(text)
    assert found in caught.value.found


@given(st.text() | st.text().map(lambda t: "http://" + t) | st.text().map(lambda t: "https://[" + t))
def test_any_text_is_a_url_or_a_url_error(text: str) -> None:
    try:
        url = urls.parse(text)
    except urls.UrlError:
        return
    assert url.host.isascii()
    assert url.host == url.host.lower()
    assert 1 <= url.port <= 65535


@given(st.text(st.characters(codec="ascii")).map(lambda t: f"http://{t}/"))
def test_the_host_of_a_url_reads_back_as_itself(text: str) -> None:
    try:
        url = urls.parse(text)
    except urls.UrlError:
        return
    host = f"[{url.host}]" if ":" in url.host else url.host
    assert urls.parse(f"http://{host}:{url.port}/").host == url.host


@given(
    st.lists(st.integers(0, 300).map(str) | st.sampled_from(["00", "01", "256", "", "1e", "²"]), min_size=3, max_size=5).map(".".join)
)  # fmt: skip
def test_an_ipv4_host_is_taken_as_it_stands_only_in_its_one_spelling(text: str) -> None:
    try:
        one_spelling = str(IPv4Address(text)) == text
    except ValueError:
        one_spelling = False
    assert bool(urls.DOTTED.fullmatch(text)) is one_spelling


@given(
    st.tuples(
        st.sampled_from(["http://", "https://", "HTTP://", "ftp://", ""]),
        st.lists(st.sampled_from(["a", "b-c", ".", "_", "1", "255", "0x1", "A", "é", "[::1]", "%41", "u@", "..", "-"]), max_size=5).map("".join),
        st.sampled_from(["", ":", ":0", ":080", ":80", ":65535", ":65536", ":x"]),
        st.sampled_from(["", "/", "//x", "/a;b", "/%20", "?", "?q", "#", "#f", "/a?b#c?d", "?a/b", "#/?"]),
    ).map("".join)
)  # fmt: skip
def test_the_usual_urls_are_read_as_all_others_would_be(text: str) -> None:
    def said(read: Callable[[str], urls.HttpUrl]) -> object:
        try:
            return read(text)
        except urls.UrlError as error:
            return error.found, error.expected

    assert said(urls.parse) == said(urls._parse_unusual)


def test_an_error_does_not_repeat_what_may_be_a_secret() -> None:
    for text in ("http://u:hunter2@h/", "hunter2", "http://h:hunter2/", "http://h/ hunter2"):
        with pytest.raises(urls.UrlError) as caught:
            urls.parse(text)
        assert "hunter2" not in str(caught.value)
