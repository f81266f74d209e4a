"""What answers a worker's questions, as the daemon has it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agentsh_net.core.configuration.settings import RateLimits
from agentsh_net.core.limits.ratelimit import Buckets
from agentsh_net.workers.arbiter import Arbiter


@pytest.fixture
def arbiter() -> Iterator[Arbiter]:
    it = Arbiter(Buckets(RateLimits()), lambda: 100.0)
    it.start()
    yield it
    it.stop()
