"""The program's entrance, as `agentsh-net` and as `python -m agentsh_net`: the shim at once, all else by the command line."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and exit."""
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


if __name__ == "__main__":
    main()
