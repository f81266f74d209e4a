"""Modules that are a distribution's packages, as BCC and nftables are: why one cannot be imported here, and what mends that."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

# Where Debian's and Ubuntu's interpreter, and no other, looks for its modules.
PLACE: Final = Path("/usr/lib/python3/dist-packages")


def absent(package: str, module: str) -> tuple[str, str]:
    """Return why a package's module cannot be imported, and the remedy: another interpreter does not see what is installed."""
    if not (PLACE / module).exists():
        return f"{package} is not installed", f"sudo apt install {package}"
    return (
        f"{package} is installed, and {sys.executable} does not see it",
        "make the environment with the distribution's Python: /usr/bin/python3 -m venv --system-site-packages DIR",
    )
