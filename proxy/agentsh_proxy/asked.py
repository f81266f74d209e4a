"""What a request's head led to, kept so that the next one with the same head is not worked out again.

Bodies and answers are not its business.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from agentsh_net.core.http_head import RequestHead, forwarded_request
from agentsh_proxy.admission import Admitted
from agentsh_proxy.signing import without_credentials
from agentsh_proxy.view import View


class Asked(NamedTuple):
    """What a request's head led to. The same head on the same connection leads to the same, while view and sessions stand."""

    head: RequestHead
    admitted: Admitted
    view: View
    sessions: Mapping[str, str]
    opening: bytes  # of the request to the upstream: line and fields, but for the framing and the blank line
    held: bool  # the body must be whole before anything leaves


def asked(head: RequestHead, admitted: Admitted, view: View, sessions: Mapping[str, str]) -> Asked:
    """Return what an admitted head led to."""
    inspected = admitted.inspected is not None
    owns = admitted.provider.aws is not None
    fields = forwarded_request(head, plain=inspected)
    opening = b"".join(
        (
            head.method.encode("ascii"),
            b" ",
            admitted.target,
            b" HTTP/1.1\r\nHost: ",
            admitted.provider.host_field,
            without_credentials(fields) if owns else fields,
            b"\r\nAccept-Encoding: identity" if inspected else b"",
        )
    )
    return Asked(head, admitted, view, sessions, opening, held=inspected or owns or not head.has_body)
