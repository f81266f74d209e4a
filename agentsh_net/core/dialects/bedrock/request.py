"""What policy needs from a Bedrock request: which MCP servers the provider is asked to call, and the tools that it offers.

Converse has no connectors of its own; what a model's maker takes rides in `additionalModelRequestFields`, or is the body itself where
the model is invoked directly.
"""

from __future__ import annotations

from dataclasses import replace

from agentsh_net.core.dialects.anthropic import request as anthropic_request
from agentsh_net.core.dialects.base import Fault, RequestFacts
from agentsh_net.core.dialects.request_reading import ambiguous, may_name_server, read_object
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.members import find, plain

_FIELDS = frozenset({"additionalmodelrequestfields"})
_DECISIVE = frozenset({"additionalmodelrequestfields", "mcpservers", "toolconfig", "tools"})


def converse(body: bytes, *, stream: bool) -> RequestFacts:
    """Return the facts of a Converse request."""
    reading = read_object(body)
    if isinstance(reading, Fault):
        return RequestFacts(stream, fault=reading)
    facts = RequestFacts(stream=stream, parsed=reading.value)
    if not may_name_server(body):
        return facts
    clashes = {plain(key) for key in reading.duplicates} & _DECISIVE
    if (fault := ambiguous(body, clashes)) is not None:
        return replace(facts, fault=fault)
    for member in find(reading.value, _FIELDS, frozenset({"messages"})):
        inner = anthropic_request.read(strict_json.dump(member.value).encode())
        facts = replace(
            facts, connectors=facts.connectors + inner.connectors, fault=facts.fault or _told(inner.fault)
        )
    return facts


def invoke(body: bytes, *, stream: bool) -> RequestFacts:
    """Return the facts of a request to a model: its connectors stand where Anthropic's do."""
    facts = anthropic_request.read(body)
    return facts if facts.stream is stream else replace(facts, stream=stream)


def _told(fault: Fault | None) -> Fault | None:
    # Fields that are no object name no server.
    return fault if fault is not None and fault.cut else None
