"""The page needs nothing from elsewhere, and its policy lets nothing but its own script run."""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

from agentsh_proxy import dashboard


def test_the_policy_names_exactly_the_script_and_the_style_of_the_page() -> None:
    page = dashboard.PAGE.decode()
    for tag in ("script", "style"):
        (inner,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = b64encode(sha256(inner.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in dashboard.POLICY
    assert "default-src 'none'" in dashboard.POLICY


def test_nothing_comes_from_elsewhere_and_nothing_is_drawn_as_markup() -> None:
    page = dashboard.PAGE.decode()
    assert not re.search(
        r"https?://|//[a-z]|\bsrc=|@import|url\(|innerHTML|insertAdjacent|document\.write|\bon[a-z]+=", page
    )
