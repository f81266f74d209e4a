"""What leads elsewhere: remote schemas (never fetched), script and data URLs, beacons in icons and images."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.strings import Text

REFERENCES = frozenset({"$ref", "$dynamicRef", "$recursiveRef"})
SCHEME = re.compile(
    r"[\s\x00-\x20]*((?:java|vb|live)\s*script|data|file|blob|filesystem|about|chrome|resource)\s*:",
    re.IGNORECASE,
)
SCRIPT = re.compile(r"\b(?:javascript|vbscript|livescript)\s?:\s?(?=[\w(%/'\[])", re.IGNORECASE)
# What an icon may be as a data URL (MCP, icons): an image. SVG is a document, and can hold script.
IMAGE = re.compile(
    r"data:image/(?:png|jpe?g|gif|webp|avif|bmp|x-icon|vnd\.microsoft\.icon)[;,]", re.IGNORECASE
)
SVG = re.compile(r"data:image/svg\+xml", re.IGNORECASE)
ACTIVE = re.compile(
    r"<script|<foreignobject|\bon[a-z]{3,20}\s*=|javascript:|href\s*=\s*[\"']?https?:", re.IGNORECASE
)
DATA_DOCUMENT = re.compile(
    r"\bdata:(?:text/html|text/javascript|application/(?:javascript|x-javascript|xhtml\+xml|x-[a-z]{2,12}|octet-stream))[;,]",
    re.IGNORECASE,
)
# Something filled in on the way out: {{conversation}}, ${secret}, <result>, %s
FILLED = r"(?:\{\{?|\$\{|%7b|<)[^}>]{0,60}(?:\}|%7d|>)|\[[a-z_ ]{3,40}\]|%s"
IMAGE_BEACON = re.compile(
    r"!\[[^\]\n]{0,200}\]\(\s?<?(https?://[^\s)]{1,2000}\?[^\s)]{1,2000})", re.IGNORECASE
)
TAG_BEACON = re.compile(
    r"<(?:img|iframe|object|embed|script|link|video|audio|source)\b[^>]{0,300}?\b(?:src|href|data)\s?=\s?[\"']?(https?://[^\s\"'>]{1,2000}|javascript:|data:text)",
    re.IGNORECASE,
)
FILLED_URL = re.compile(rf"https?://[^\s\"'`)<>{{]{{1,300}}\?[^\s\"'`)]{{0,300}}?(?:{FILLED})", re.IGNORECASE)
# Hosts that exist to catch what is sent to them.
CATCHER = re.compile(
    r"\b(?:[\w-]+\.)?(?:webhook\.site|requestbin\.\w+|pipedream\.net|burpcollaborator\.net|oastify\.com|interact\.sh|oast\.(?:pro|live|site|online|fun|me)|ngrok(?:-free)?\.(?:io|app|dev)|requestcatcher\.com|beeceptor\.com|hookbin\.com|canarytokens\.(?:com|org)|dnslog\.cn|ceye\.io|trycloudflare\.com|serveo\.net|localtunnel\.me|loca\.lt|pastebin\.com/raw|transfer\.sh)\b",
    re.IGNORECASE,
)
# A part of each of them, to be looked for first.
CATCHING = (
    "webhook.site", "requestbin.", "pipedream.net", "burpcollaborator.net", "oastify.com", "interact.sh", "oast.", "ngrok", "requestcatcher.com",
    "beeceptor.com", "hookbin.com", "canarytokens.", "dnslog.cn", "ceye.io", "trycloudflare.com", "serveo.net", "localtunnel.me", "loca.lt",
    "pastebin.com/raw", "transfer.sh",
)  # fmt: skip
TUNNEL = re.compile(r"ngrok|trycloudflare|serveo|localtunnel|loca\.lt", re.IGNORECASE)
PLAIN_ADDRESS = re.compile(
    r"https?://(?:\d{1,3}(?:\.\d{1,3}){3}|0x[0-9a-f]{8}|\d{8,10})(?=[:/?#]|$)", re.IGNORECASE
)
LOCAL = re.compile(
    r"https?://(?:127\.|10\.|192\.168\.|172\.(?:1[6-9]|2\d|3[01])\.|0\.0\.0\.0)", re.IGNORECASE
)


# A person who reads `https://bank.example@evil.example` or an encoded name sees another host than the browser.
USERINFO = re.compile(r"https?://[^/?#\\]*@", re.IGNORECASE)
PUNYCODE = re.compile(r"https?://[^/?#\\]*\bxn--", re.IGNORECASE)
LOOPBACK = re.compile(r"http://(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])(?=[:/?#]|$)", re.IGNORECASE)


def links(texts: Iterable[Text], *, strict: bool) -> Iterator[Finding]:
    """Find what leads elsewhere. `strict` is for definitions, where icons, images and addresses have no business but their own."""
    for text in texts:
        raw = text.raw
        last = text.steps[-1] if text.steps else ""
        if not text.key and last in REFERENCES and not raw.startswith("#"):
            remote = "://" in raw or raw.startswith("//")
            name, severity = (
                ("remote-reference", Severity.HIGH) if remote else ("outside-reference", Severity.LOW)
            )
            yield _finding(name, severity, text, (0, len(raw)))
            continue
        if ":" not in raw:
            continue
        if _is_link(text.steps) and not text.key:
            yield from _link(text)
        yield from _inside(text, strict=strict)


def opened(texts: Iterable[Text]) -> Iterator[Finding]:
    """Find URLs that a person is asked to open and no honest server names (MCP 2025-11-25, elicitation, safe URL handling)."""
    for text in texts:
        if text.key or text.steps[-1:] != ("url",) or "properties" in text.steps:
            continue
        raw = text.raw.strip()
        if USERINFO.match(raw):
            yield _finding("disguised-url", Severity.HIGH, text, (0, len(text.raw)))
        elif PUNYCODE.match(raw):
            yield _finding("disguised-url", Severity.MEDIUM, text, (0, len(text.raw)))
        elif not raw.lower().startswith("https://") and not LOOPBACK.match(raw):
            severity = Severity.MEDIUM if raw.lower().startswith("http://") else Severity.HIGH
            yield _finding("unsafe-url", severity, text, (0, len(text.raw)))


def _is_link(steps: tuple[Any, ...]) -> bool:
    """Say whether a string stands where a client takes it for a URL: an icon's source, a link's uri, a websiteUrl."""
    last = str(steps[-1]) if steps else ""
    return (
        last in ("src", "uri", "url", "href", "websiteUrl", "iconUrl", "icon") and "properties" not in steps
    )


def _link(text: Text) -> Iterator[Finding]:
    raw = text.raw
    if "icons" in text.steps or text.steps[-1] in ("iconUrl", "icon"):
        yield from _icon(text)
    elif (match := SCHEME.match(raw)) and match[1].lower() not in ("file", "resource", "blob", "data"):
        yield _finding("script-url", Severity.HIGH, text, (0, len(raw)))


def _icon(text: Text) -> Iterator[Finding]:
    raw = text.raw
    if SVG.match(raw):
        if ACTIVE.search(_content(raw)):
            yield _finding("script-url", Severity.HIGH, text, (0, len(raw)))
        return
    if IMAGE.match(raw):
        return
    match = SCHEME.match(raw)
    if match:
        yield _finding(
            "script-url" if "script" in match[1].lower() else "unsafe-icon",
            Severity.HIGH,
            text,
            (0, len(raw)),
        )
    elif "?" in raw and raw.lower().startswith("http"):
        yield _finding("beacon", Severity.MEDIUM, text, (0, len(raw)))
    elif raw.lower().startswith("http://") and not LOCAL.match(raw) and "://localhost" not in raw:
        yield _finding("plain-http-icon", Severity.LOW, text, (0, len(raw)))


def _content(url: str) -> str:
    """Return what a data URL holds, as text."""
    head, _, body = unquote(url).partition(",")
    if head.lower().endswith(";base64"):
        try:
            return b64decode(body + "=" * (-len(body) % 4)).decode("utf-8", "replace")
        except (binascii.Error, ValueError):
            return body
    return body


def _inside(text: Text, *, strict: bool) -> Iterator[Finding]:
    raw, low = text.raw, text.plain
    if "script" in low and (match := SCRIPT.search(raw)) and _is_markup(raw, match.start()):
        yield _finding("script-url", Severity.HIGH, text, match.span())
    if "data:" in low and (match := DATA_DOCUMENT.search(raw)):
        yield _finding("data-url", Severity.HIGH, text, match.span())
    if "://" not in raw and "<" not in raw:
        return
    if "![" in raw and (match := IMAGE_BEACON.search(raw)):
        filled = re.search(FILLED, match[1], re.IGNORECASE)
        plainly = Severity.MEDIUM if strict else Severity.LOW  # pages have badges with a query
        yield _finding("beacon", Severity.HIGH if filled else plainly, text, match.span())
    elif "<" in raw and strict and (match := TAG_BEACON.search(raw)):
        yield _finding("beacon", Severity.MEDIUM, text, match.span())
    elif strict and "?" in raw and _wants_private(low) and (match := FILLED_URL.search(raw)):
        yield _finding("beacon", Severity.HIGH, text, match.span())
    if match := CATCHER.search(raw):
        usual = not strict and TUNNEL.search(match[0])  # in the instructions of honest projects, too
        yield _finding("catcher-host", Severity.LOW if usual else Severity.MEDIUM, text, match.span())
    elif strict and (match := PLAIN_ADDRESS.search(raw)) and not LOCAL.match(match[0]):
        yield _finding("bare-address", Severity.LOW, text, match.span())


def _is_markup(raw: str, at: int) -> bool:
    """Say whether a script URL stands where it would be followed, not where a text speaks of `javascript: true`."""
    before = raw[max(0, at - 12) : at].rstrip().lower()
    return at == 0 or before.endswith(("](", "=", '="', "='", "<", "url", "link", ":", "src", "href"))


def _wants_private(low: str) -> bool:
    return any(
        word in low
        for word in (
            "conversation",
            "history",
            "secret",
            "token",
            "prompt",
            "message",
            "data",
            "content",
            "result",
            "user",
        )
    )


def _finding(pattern: str, severity: Severity, text: Text, span: tuple[int, int]) -> Finding:
    return Finding(pattern, Category.REFERENCE, severity, text.path, excerpt(text.raw, *span))
