"""The text is what Prometheus reads: escaped, typed, cumulative."""

from __future__ import annotations

from agentsh_net.core.audit.exposition import family, histogram, render, summary, word


def test_a_family_is_told_with_its_type_and_escaped_labels() -> None:
    text = render([family("a_total", "counter", "All.", [({"x": 'q"\\\n', "y": "z"}, 3), ({}, 0.5)])])
    assert (
        text == '# HELP a_total All.\n# TYPE a_total counter\na_total{x="q\\"\\\\\\n",y="z"} 3\na_total 0.5\n'
    )


def test_a_histogram_is_cumulative_and_ends_in_infinity() -> None:
    text = render([histogram("h", "H.", (0.5, 1.0), (1, 2, 3), 9.25)])
    assert text.splitlines()[2:] == [
        'h_bucket{le="0.5"} 1',
        'h_bucket{le="1"} 3',
        'h_bucket{le="+Inf"} 6',
        "h_sum 9.25",
        "h_count 6",
    ]


def test_quantiles_are_a_summarys_which_has_a_sum_and_a_count() -> None:
    text = render([summary("s_seconds", "S.", {"0.5": 0.25}, 1.5, 4), summary("t", "T.", {}, 0, 0)])
    assert text.splitlines()[1:5] == ["# TYPE s_seconds summary", 's_seconds{quantile="0.5"} 0.25', "s_seconds_sum 1.5", "s_seconds_count 4"]  # fmt: skip
    assert text.splitlines()[-2:] == ["t_sum 0", "t_count 0"]


def test_others_words_become_labels_only_where_they_are_plain() -> None:
    assert [word(x) for x in ("frame_too_long", 'a"b', "", "x" * 65, None, 7)] == [
        "frame_too_long",
        *["other"] * 5,
    ]
