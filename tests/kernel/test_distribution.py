"""What cannot be imported is said to be missing only where it is; where another Python cannot see it, that is said, with what mends it."""

import sys
from pathlib import Path

import pytest

from agentsh_net.kernel import distribution


def test_what_is_not_installed_is_to_be_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "PLACE", tmp_path)
    told = distribution.absent("python3-nftables", "nftables")
    assert told == ("python3-nftables is not installed", "sudo apt install python3-nftables")


def test_what_another_interpreter_does_not_see_is_not_to_be_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distribution, "PLACE", tmp_path)
    (tmp_path / "nftables").mkdir()
    reason, remedy = distribution.absent("python3-nftables", "nftables")
    assert reason == f"python3-nftables is installed, and {sys.executable} does not see it"
    assert "/usr/bin/python3 -m venv --system-site-packages" in remedy and "apt" not in remedy
