"""What a request's head led to, kept so that the next one with the same head is not worked out again.

Bodies and answers are not its business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from agentsh_net.core.dialects.base import RequestFacts
from agentsh_net.core.web.familiar_heads import Mould
from agentsh_net.core.web.http_head import RequestHead, forwarded_request
from agentsh_proxy.llm.admission import Admitted, admit
from agentsh_proxy.llm.reporting import Subject
from agentsh_proxy.llm.signing import credentialed, without_credentials
from agentsh_proxy.llm.view import View

# Files, as they are uploaded. Of any other type a body may be JSON: servers read it as that whatever it is called (`curl -d` names a form).
_FILE: Final = re.compile(
    rb"\r\ncontent-type:[ \t]*(?:multipart/|image/|audio/|video/|application/(?:octet-stream|pdf|zip)[ \t;\r])",
    re.IGNORECASE,
)
# Ollama's and Gemini's, of files that have no type, or a wrong one.
_UPLOADS: Final = re.compile(rb"/(?:api/blobs|upload)/", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request's head led to. The same head on the same connection leads to the same, while view and sessions stand."""

    head: RequestHead
    admitted: Admitted
    view: View
    sessions: Mapping[str, str]
    opening: bytes  # of the request to the upstream: line and fields, but for the framing and the blank line
    held: bool  # the body must be whole before anything leaves
    trails: bool  # charged against the provider's limits, or kept in the archive
    reads: Callable[[bytes], RequestFacts] | None  # a body with nothing to decode, to search or to sign
    glances: Callable[[bytes], bool] | None  # at a whole answer: enough where nothing else wants to see it
    mould: Mould | None = None  # of the head, where the next one may be the same

    def stands(self, view: View, sessions: Mapping[str, str]) -> bool:
        """Say whether the same head still leads to the same."""
        return self.view is view and self.sessions is sessions

    def subject(self, request_id: str = "") -> Subject:
        """Return what events about the request are about; `request_id` is the provider's, once it gave one."""
        return Subject(self.admitted.session_id, request_id, self.admitted.dialect.name)

    def request(self, body: bytes | None) -> bytes:
        """Return the request to the upstream; without a body, where one streams, its head."""
        head, opening, aws = self.head, self.opening, self.admitted.provider.aws
        if aws is not None:
            opening = credentialed(opening, body or b"", aws)
        if body is not None and (head.length is not None or head.chunked):
            return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (opening, len(body), body)
        if head.chunked:
            return opening + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
        if head.length is not None:
            return b"%b\r\nContent-Length: %d\r\n\r\n" % (opening, head.length)
        return opening + b"\r\n\r\n"


def renewed(what: Asked, view: View, sessions: Mapping[str, str]) -> Asked:
    """Return what a head that was admitted before leads to now. Raises RefusalError where it leads nowhere any more."""
    if what.stands(view, sessions):
        return what
    admitted = admit(what.head, view, sessions, what.admitted.here)
    assert isinstance(admitted, Admitted)  # noqa: S101 - what is answered here has the same path under any policy
    return asked(what.head, admitted, view, sessions)


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
    # By DLP, and for MCP servers that nobody sees at work, be the path known or not.
    searched = not (_FILE.search(head.fields + b"\r") or _UPLOADS.search(admitted.target))
    held = inspected or owns or searched or not head.has_body
    plain = inspected and view.guard is None and not (owns or head.encoding)
    trails = inspected and (view.stores or (admitted.provider.limited and head.method == "POST"))
    dialect = admitted.inspected if plain else None
    reads = dialect.request if dialect is not None else None
    glances = dialect.harmless if dialect is not None and not trails and head.method != "HEAD" else None
    return Asked(head, admitted, view, sessions, opening, held, trails, reads, glances)
