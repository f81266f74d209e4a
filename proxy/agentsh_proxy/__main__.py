"""`python -m agentsh_proxy`: a worker process, started by the supervisor and by nobody else."""

from __future__ import annotations

import sys

from agentsh_proxy.worker import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
