"""The program's entrance, as `agentsh-net` and as `python -m agentsh_net`: the shim at once, all else by the command line."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run the command line and exit."""
    _open_what_is_closed()
    if "shim" in sys.argv[1:4]:
        from agentsh_net.cli import shim

        wanted = shim.read(sys.argv[1:])
        if wanted is not None:
            sys.exit(shim.run(wanted))
    try:
        from agentsh_net.cli import main as command_line

        command_line.main()
    except KeyboardInterrupt:  # while commands are still imported
        sys.exit(130)  # cli.failures.Exit.INTERRUPTED, which may not be there yet


def _open_what_is_closed() -> None:
    """Open the standard streams that the caller closed (`2>&-`), for us and whom we start: a pipe or socket would get the number.

    Standard output for reading: that what is printed there goes nowhere has to fail, as it does for other programs.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor == 1 else os.O_RDWR)  # the lowest number is given
            os.set_inheritable(descriptor, True)


if __name__ == "__main__":
    main()
