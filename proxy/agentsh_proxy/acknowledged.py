"""Whether what was sent on a connection arrived: the kernel knows what the other side's has acknowledged (Linux's `struct tcp_info`).

What is done about it is the caller's business.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from typing import Final

# tcpi_bytes_acked; tcpi_bytes_sent and tcpi_bytes_retrans (since Linux 4.19).
_COUNTS: Final = struct.Struct("=120xQ72xQQ")
# Bytes at most with which TLS says farewell as the other side hangs up (24 in 1.3); no request is as short.
_FAREWELL: Final = 64


def acknowledged(transport: asyncio.BaseTransport) -> bool:
    """Say whether the other side's kernel has the requests that were sent, so that its program may have read it; so it counts where nobody can tell."""
    try:
        fd = os.dup(transport.get_extra_info("socket").fileno())
        with socket.socket(fileno=fd) as same:
            info = same.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _COUNTS.size)
        acked, sent, again = _COUNTS.unpack(info)
    except (OSError, AttributeError, struct.error):
        return True
    return bool(acked + _FAREWELL >= sent - again)
