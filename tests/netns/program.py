"""`agentsh-net` as it is, but that it looks into the network namespaces of its own box only. A program of its own: daemon.py starts it."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parent.parent

if __name__ == "__main__":
    sys.path[0] = str(TESTS)

    from agentsh_net.__main__ import main
    from netns import box

    box.keep_to_its_own_namespaces()
    main()
