"""Files that a client fetches from a provider: results of batches are read line by line, everything else passes as it came.

Sans IO. Which it is, the first line tells. What a line means is the dialect's business.
"""

from __future__ import annotations

from http.client import PARTIAL_CONTENT

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.framing.sse import BOM
from agentsh_net.core.values import strict_json
from agentsh_net.core.web.http_head import ResponseHead
from agentsh_proxy.inflating import inflater
from agentsh_proxy.llm.answers import StreamInspection
from agentsh_proxy.llm.choosing import peeked
from agentsh_proxy.llm.deferring import Deferred
from agentsh_proxy.llm.inspecting import Inspection, check_charset
from agentsh_proxy.llm.overhearing import Overhearing, overheard
from agentsh_proxy.llm.relaying import Answer, Client


def any_file(head: ResponseHead, client: Client, inspection: Inspection) -> Deferred:
    """Return what becomes of one fetched file."""

    def passing() -> Answer:
        return overheard(
            head, client, Overhearing(inspection.fail_closed, inspection.enforce, inspection.note)
        )

    def chosen(held: bytes, *, last: bool) -> Answer | None:
        if head.status == PARTIAL_CONTENT:
            return passing()  # a part of a file with lines missing from it would be another part
        beginning = peeked(held, head, inspection).removeprefix(BOM).lstrip()
        line, end, _ = beginning.partition(b"\n")
        whole = bool(end) or last
        if beginning.startswith(b"{") or not (beginning or last):
            if not whole and len(beginning) <= inspection.limits.max_frame:
                return None
            if not whole or _is_object(line.strip()):
                check_charset(head, inspection)
                decoder = inflater(head.encoding) if head.encoding else None
                return StreamInspection(head, client, inspection, decoder)
        return passing()

    return Deferred(client, chosen)


def _is_object(line: bytes) -> bool:
    """Say whether any client finds an object in a line."""
    try:
        return isinstance(strict_json.read(line).value, dict)
    except strict_json.DivergentError:
        return True
    except ProtocolError:
        return False
