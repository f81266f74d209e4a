"""Where a request goes: session token, provider, and the path below the provider's base.

Paths are read the way the most generous upstream could read them, and what could be read in two ways is refused.
Whether a path is inspected is the dialects' business; tokens are only cut out here, never checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from agentsh_net.core.errors import ProtocolError

_ABSOLUTE = re.compile(rb"(?i:https?)://([^/?@]*)(/[^?]*)?(\?.*)?")
_AMBIGUOUS = re.compile(rb"//|\\|/\.{1,2}(?=/|$)")
_VERSION_SEGMENT = re.compile(rb"/v[0-9][0-9a-z]*", re.IGNORECASE)
# Bare paths that go to the provider of a dialect, as the SDKs send them when given no provider.
_BARE = (
    ("/v1/messages", "anthropic"), ("/v1/chat/completions", "openai"), ("/v1/responses", "openai"), ("/v1beta/models", "gemini"),
    ("/v1beta/interactions", "gemini"), ("/v1/interactions", "gemini"),
    ("/api", "ollama"), ("/model", "bedrock"),
)  # fmt: skip
# Endpoints whose answers may carry tool calls in a wire format that no dialect of this version reads.
_UNREAD = re.compile(
    r"/(?:[^/]+:(?:async)?batchgeneratecontent|v1(?:alpha|beta)[^/]*/batches(?:/[^/]+)?"  # Gemini
    r"|v1[^/]*/interactions(?:/.+)?|v1[^/]*/triggers(?:/.+)?"  # Gemini's other API
    r"|[^/]+:(?:stream)?rawpredict"  # other publishers' models on Vertex AI
    r"|model/.+/invoke-with-bidirectional-stream|runtimes/.+/invocations|harnesses/invoke"  # Bedrock
    r"|threads/[^/]+/runs(?:/.*)?|threads/runs"  # OpenAI Assistants
    r"|agents(?:/.+)?|v1/sessions(?:/.+)?|v1/deployments(?:/.+)?|v1/environments/[^/]+/work(?:/.+)?"  # agents that a provider runs
    r"|chatkit/(?:sessions|threads)(?:/.+)?|evals/[^/]+/runs(?:/.+)?"
    r")$"
)
# Those that let a client, or the provider, do what nobody sees here: what is asked for stands in a file, or goes another way.
_UNSEEN = re.compile(
    r"/(?:realtime(?:/(?:calls|sessions|client_secrets)(?:/.+)?)?|live/sessions(?:/.+)?|v1[^/]*/auth_tokens|(?<!messages/)batches"
    r"|batch/jobs|audio/sessions|client/sessions|connectors/[^/]+/tools/[^/]+/call"  # Mistral
    r"|v1[^/]*/(?:.+/)?batchpredictionjobs)$"  # Vertex AI
)
_WITHOUT_CALLS = frozenset(("DELETE", "HEAD", "OPTIONS"))
_UNQUOTES = 3  # an upstream behind a gateway may decode twice; three settles every honest path


class Target(NamedTuple):
    """A request target: path and query (with its `?`) as they came; `authority` only in absolute form."""

    path: bytes
    query: bytes
    authority: bytes | None


class Route(NamedTuple):
    """Where a request goes. `token` is the session's, or empty; `rest` the path below the provider, as it came."""

    token: str
    provider: str
    rest: bytes


def split_target(target: bytes) -> Target:
    """Return the parts of a request target (RFC 9112 section 3.2). Raises ProtocolError for forms that name no resource."""
    if target.startswith(b"/"):
        path, mark, query = target.partition(b"?")
        return Target(path, mark + query, None)
    match = _ABSOLUTE.fullmatch(target)
    if match is None:
        raise ProtocolError("the request target is neither a path nor an http URL")
    authority, path, query = match.groups()
    return Target(path or b"/", query or b"", authority)


def canonical(path: bytes) -> str:
    """Return the path as the most generous reader takes it: decoded, without parameters and fragment, lower case, no last slash or space.

    Raises ProtocolError where readers disagree on the segments: `//`, dot segments, backslashes, encoded or not, controls.
    """
    if _AMBIGUOUS.search(path):
        raise ProtocolError(
            "the path holds an empty or dot segment or a backslash; send the path without them"
        )
    if b"%" not in path and b";" not in path:
        return path.decode("ascii").lower().rstrip("/")
    read = path
    for _ in range(_UNQUOTES):
        if b"%" not in read:
            break
        read = unquote_to_bytes(read)
    read = re.sub(rb";[^/]*|#.*", b"", read)
    if _AMBIGUOUS.search(read) or re.search(rb"[\x00-\x1f\x7f]", read):
        raise ProtocolError("the path holds an encoded empty or dot segment, backslash or control character")
    return read.decode("utf-8", "replace").lower().rstrip("/ ")


def locate(path: bytes, providers: Mapping[str, str]) -> Route:
    """Return where `path` goes, given the dialect of each provider by name. Raises ProtocolError 404 naming the known ones."""
    token = ""
    if path.startswith(b"/s/"):
        token_bytes, slash, rest = path[3:].partition(b"/")
        token, path = token_bytes.decode("ascii"), slash + rest
    first, slash, rest = path[1:].partition(b"/")
    name = first.decode("ascii")
    if name in providers:
        return Route(token, name, slash + rest or b"/")
    bare = path.decode("ascii")
    for prefix, dialect in _BARE:
        if bare == prefix or bare.startswith(prefix + "/"):
            return Route(token, _provider_of(dialect, providers), path)
    raise ProtocolError(f"no provider at this path; known: {known(providers)}", status=404)


def known(providers: Iterable[str]) -> str:
    """Return the paths that lead somewhere, for an error message."""
    return ", ".join([*(f"/{name}/" for name in sorted(providers)), *(prefix for prefix, _ in _BARE)])


def upstream_path(base_path: bytes, rest: bytes) -> bytes:
    """Return the path to ask of the upstream.

    A version segment that ends the base and begins the rest stands once, so that `/openai/v1/chat/completions`
    and the base `https://api.openai.com/v1` meet.
    """
    base = base_path.rstrip(b"/")
    last = base[base.rfind(b"/") :] if base else b""
    if last and _VERSION_SEGMENT.fullmatch(last) and (rest == last or rest.startswith(last + b"/")):
        rest = rest[len(last) :]
    return base + rest or b"/"


def api_path(base_path: bytes, rest: bytes) -> bytes:
    """Return the path from the version on, or below the provider: what a provider or gateway is called says nothing of an endpoint."""
    base = base_path.rstrip(b"/")
    last = base[base.rfind(b"/") :] if base else b""
    return upstream_path(last, rest) if last and _VERSION_SEGMENT.fullmatch(last) else rest


def unread(method: str, path: str) -> str:
    """Say why calls may pass unseen at a canonical path that no dialect reads; empty where that is not known of it."""
    if method in _WITHOUT_CALLS:
        return ""
    if _UNREAD.search(path):
        return "may carry tool calls in a format that is not available in this version"
    if method == "POST" and _UNSEEN.search(path):
        return "may make the provider or a client run tools in what does not pass here"
    return ""


def _provider_of(dialect: str, providers: Mapping[str, str]) -> str:
    if providers.get(dialect) == dialect:
        return dialect
    for name, spoken in providers.items():
        if spoken == dialect:
            return name
    raise ProtocolError(f"no provider speaks the {dialect} dialect; known: {known(providers)}", status=404)
