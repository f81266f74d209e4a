"""Which strings of a request are somebody's words, and which are the protocol's: ids, signatures, encrypted blocks, images.

Every wire format at once, by the names of keys: a body is what its path says only until a client sends another one there.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.dlp.strings import Text

# Zones of a body: the provider's own structure; what the agent and its tools put in it; definitions; what is not read at all.
PROTOCOL, FREE, DEFINITIONS, CLOSED = range(4)

# Values that must stay as they are for the request to mean what it means.
_FIXED: Final = frozenset(
    {
        "signature", "thoughtSignature", "thought_signature", "encrypted_content", "encrypted_index", "encrypted_stdout",
        "redactedContent", "thinking", "b64_json", "id", "type", "role", "model", "name", "namespace", "status", "object", "service_tier",
        "prompt_cache_key", "safety_identifier", "media_type", "mimeType", "mime_type", "detail", "authorization",
        "authorization_token", "server_url", "server_label", "bytes", "ids", "stop_reason", "finish_reason", "toolUseId",
        "responseId", "include", "betas", "anthropic_version", "anthropic_beta",
    }
)  # fmt: skip
# Arguments and results of tools: any keys, all of them the agent's. As objects only: `input` is also the Responses API's list.
_FREE: Final = frozenset({"input", "args", "arguments", "response", "output", "json", "parameters_json"})
_DEFINITIONS: Final = frozenset({"tools", "functions", "additional_tools", "toolConfig", "response_format", "schema", "format", "text_format"})  # fmt: skip
_CLOSED: Final = frozenset(
    {"mcp_servers", "mcpServers", "headers", "tool_choice", "toolChoice", "allowed_tools"}
)
# What holds JSON as a string, in OpenAI's wire formats.
NESTED: Final = frozenset({"arguments"})
_SEALED: Final = frozenset({"redacted_thinking", "base64"})  # types whose `data` is

_BLOB: Final = re.compile(r"[A-Za-z0-9+/\r\n]{64,}={0,2}\s*\Z")
_LONG_BLOB: Final = 512  # characters; longer than any credential that is written without a dot or a space
_LONG: Final = re.compile(r"[A-Za-z0-9+/_-]*={0,2}\s*\Z")
_DATA_URL: Final = re.compile(r"data:[^,\s]{0,256};base64,[A-Za-z0-9+/_%\r\n-]*={0,2}\s*\Z")


def zone(outer: int, key: str, is_object: bool) -> int:
    """Return the zone of a container, given the one it stands in and its key (`strings.Zone`)."""
    if outer != PROTOCOL:
        return CLOSED if outer == DEFINITIONS and key == "headers" else outer
    if key in _CLOSED:
        return CLOSED
    if key in _DEFINITIONS:
        return DEFINITIONS
    return FREE if is_object and key in _FREE else PROTOCOL


def is_searched(text: Text) -> bool:
    """Say whether a string may hold what must not leave, as far as can be said before its object was read to the end."""
    where = text.frame.zone
    if where == CLOSED:
        return False
    if where == DEFINITIONS:
        return text.key == "description" and not text.is_key
    value = text.value
    if where == PROTOCOL and (text.is_key or _is_fixed(text.key)):
        return False
    if text.key in {"data", "images"} and _BLOB.match(value):
        return False
    if value.startswith("data:") and _DATA_URL.match(value):
        return False
    return len(value) < _LONG_BLOB or not _LONG.match(value)


def is_sealed(text: Text) -> bool:
    """Say whether a string, its object read, is an encrypted block or an image."""
    return text.frame.zone == PROTOCOL and text.key == "data" and text.frame.type in _SEALED


def _is_fixed(key: str) -> bool:
    return key in _FIXED or key.endswith(("_id", "Id", "_ids"))
