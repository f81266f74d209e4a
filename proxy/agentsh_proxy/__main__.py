"""`python -m agentsh_proxy`: a worker process or, as `page` or `dns-stub`, what these names say; started by the supervisor only."""

from __future__ import annotations

import sys

if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["page"]:  # each loads what it needs and no more: the page is a third of a worker
        from agentsh_proxy import page

        sys.exit(page.main(arguments[1:]))
    if arguments[:1] == ["dns-stub"]:
        from agentsh_proxy import dns_stub

        sys.exit(dns_stub.main(arguments[1:]))
    from agentsh_proxy import worker

    sys.exit(worker.main(arguments))
