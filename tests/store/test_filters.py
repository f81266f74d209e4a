"""Filters are checked before they reach SQL, and a value never becomes part of a statement."""

import pytest

from agentsh_net.clock import lowest_id, rfc3339
from agentsh_net.core.errors import ProtocolError
from agentsh_net.store.filters import Filters, Where, matching, since_ns

NOW = 1_700_000_000 * 10**9  # 2023-11-14T22:13:20Z


def test_nothing_given_means_the_last_hundred():
    assert Filters.parse({"server": None}, NOW) == Filters(limit=100)


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"colour": "red"}, "no filter 'colour'"),
        ({"limit": 0}, "limit: found 0"),
        ({"limit": 10**9}, "expected a number from 1"),
        ({"limit": True}, "limit: found True"),
        ({"server": 7}, "server: found 7; expected text"),
        ({"action": "maybe"}, "expected allow or block"),
        ({"since": "yesterday"}, "expected 10m"),
        ({"since": ["10m"]}, "expected text"),
        ({"session": "\udcff"}, "session: .* expected text in UTF-8"),
    ],
)
def test_a_bad_filter_is_refused_by_name(filters, words):
    with pytest.raises(ProtocolError, match=words):
        Filters.parse(filters, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("10m", 1_699_999_400),
        ("2h", 1_699_992_800),
        ("7d", 1_699_395_200),
        ("90s", 1_699_999_910),
        ("999999999w", 1e-9),
        ("2023-11-14T22:13:20Z", 1_700_000_000),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000),
        ("2023-11-14 22:13:20", 1_700_000_000),
        ("2023-11-14", 1_699_920_000),
    ],
)
def test_since_is_an_age_or_a_time_in_utc(text, seconds):
    assert since_ns(text, NOW) == pytest.approx(seconds * 10**9)


def test_a_star_stands_for_anything_and_nothing_else_does():
    assert matching(Where(), "type", "mcp_*100%") == Where(
        "1 AND type LIKE ? ESCAPE '\\'", ("mcp\\_%100\\%",)
    )


def test_one_bound_holds_where_both_a_time_and_an_id_give_one():
    early, late = lowest_id(NOW - 10**10), lowest_id(NOW + 10**10)
    assert Filters(since_ns=NOW, after=early).when().values[0] == lowest_id(NOW - 10**9)
    assert Filters(since_ns=NOW, after=late).when("c.event_id").sql == "c.event_id > ? AND timestamp >= ?"
    assert Filters(since_ns=NOW, after=late).when().values == (late, rfc3339(NOW))
    assert Filters().when() == Where()
