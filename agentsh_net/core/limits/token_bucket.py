"""A token bucket: so much at once, and so much a second. `now` is an argument, in seconds of the caller's clock."""

from __future__ import annotations

from dataclasses import dataclass

_ROUNDING = 1e-9  # of a token: whoever waited as long as he was told gets it


@dataclass(slots=True)
class Bucket:
    """`tokens` of `size` could be taken at `at`; below 0 they are owed."""

    rate: float  # tokens a second
    size: float
    tokens: float
    at: float

    @classmethod
    def full(cls, size: float, rate: float, now: float = 0.0) -> Bucket:
        """Return a bucket from which nothing was taken yet."""
        return cls(rate, size, size, now)

    def fill(self, now: float) -> None:
        """Put in what came since the last look."""
        self.tokens = min(self.size, self.tokens + max(0.0, now - self.at) * self.rate)
        self.at = max(self.at, now)

    def wait(self, now: float, wanted: float = 1) -> float:
        """Return the seconds until so many can be had; more than a bucket holds can be had from a full one."""
        self.fill(now)
        missing = min(wanted, self.size) - self.tokens
        return missing / self.rate if missing > _ROUNDING else 0.0

    def take(self, now: float) -> bool:
        """Take a token, if there is one, and say so."""
        there = not self.wait(now)
        self.tokens -= there
        return there
