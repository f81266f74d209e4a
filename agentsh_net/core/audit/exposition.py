"""Numbers as Prometheus reads them (text format 0.0.4): families of samples, escaped, in a stable order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_WORD: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}")

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Family:
    """One metric: `kind` is counter, gauge, summary or histogram; a sample's suffix is added to the name (`_bucket`)."""

    name: str
    kind: str
    help: str
    samples: Sequence[tuple[Labels, float, str]]


def family(name: str, kind: str, help_: str, samples: Iterable[tuple[Labels, float]]) -> Family:
    """Return a counter or a gauge."""
    return Family(name, kind, help_, [(labels, value, "") for labels, value in samples])


def histogram(name: str, help_: str, bounds: Sequence[float], counts: Sequence[int], total: float) -> Family:
    """Return a histogram of how many were at most each bound and above the one before; `counts` has one more for the rest."""
    samples: list[tuple[Labels, float, str]] = []
    seen = 0
    for bound, count in zip([*map(_number, bounds), "+Inf"], counts, strict=True):
        seen += count
        samples.append(({"le": bound}, seen, "_bucket"))
    return Family(name, "histogram", help_, [*samples, ({}, total, "_sum"), ({}, seen, "_count")])


def summary(name: str, help_: str, quantiles: Mapping[str, float], total: float, count: int) -> Family:
    """Return quantiles with the sum and the number of what they are of."""
    samples: list[tuple[Labels, float, str]] = [
        ({"quantile": q}, value, "") for q, value in quantiles.items()
    ]
    return Family(name, "summary", help_, [*samples, ({}, total, "_sum"), ({}, count, "_count")])


def render(families: Iterable[Family]) -> str:
    """Return the text."""
    lines: list[str] = []
    for each in families:
        lines += [f"# HELP {each.name} {each.help}", f"# TYPE {each.name} {each.kind}"]
        for labels, value, suffix in each.samples:
            inner = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
            lines.append(
                f"{each.name}{suffix}{{{inner}}} {_number(value)}"
                if inner
                else f"{each.name}{suffix} {_number(value)}"
            )
    return "\n".join(lines) + "\n"


def word(text: object) -> str:
    """Return what may be a label's value when others wrote it: a plain word, or `other`."""
    return text if isinstance(text, str) and _WORD.fullmatch(text) else "other"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else repr(float(value))
