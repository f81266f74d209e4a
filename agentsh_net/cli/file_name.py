"""A file that the command line names.

Whether it may be read, and what to do where it may not, says who opens it: click would print its usage and no remedy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

FILE: Final = click.Path(path_type=Path, readable=False)
