"""Text inside text: base64 and hexadecimal runs that spell something readable, so that the other detectors read it, too."""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from agentsh_net.core.inspect.ciphers import readings
from agentsh_net.core.inspect.disguised import undisguised
from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.plain import plain
from agentsh_net.core.inspect.strings import Text

# From 18 bytes on: shorter ones spell a word or two, and long words of prose look like them.
BASE64 = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}={0,2}(?![A-Za-z0-9+/_-])")
HEX = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{2}){18,}(?![0-9A-Za-z])|(?:\\x[0-9a-fA-F]{2}){12,}")
SHORTEST = 24  # characters of a text with a run
# Characters of one value that are read besides those that stand there, a run for so many at least: nobody hides behind a few decoys.
MAX_SPELLED = 128 << 10
LEAST = 64
FEWEST_LETTERS = 8
MAX_RUN = 16_384  # characters of a run that are decoded, and bytes that it inflates to
# How gzip and zlib begin (RFC 1952, RFC 1950).
INFLATED = (
    b"\x1f\x8b",
    b"\x78\x01",
    b"\x78\x9c",
    b"\x78\xda",
)
# What a shell is given: nobody has an honest reason to encode it in the definition of a tool.
COMMAND = re.compile(
    r"\b(?:curl|wget|bash|zsh|nc|ncat|chmod|powershell|eval|mkfifo)\s|\brm\s+-|/bin/(?:ba|z)?sh\b|/dev/(?:tcp|udp)/|\|\s*(?:ba|z)?sh\b"
)


def unmasked(texts: Iterable[Text]) -> Iterator[Text]:
    """Yield what texts say without any disguise, the rarer ones too: for definitions and results."""
    texts = tuple(texts)
    yield from decoded(texts)
    yield from _read((text, spelled) for text in texts for spelled in readings(text.raw))


def decoded(texts: Iterable[Text]) -> Iterator[Text]:
    """Yield what runs in texts spell, each at the place of its text; up to MAX_SPELLED characters."""
    yield from _read(
        (text, spelled) for text in texts for spelled in chain(_spelled(text.raw), undisguised(text.raw))
    )


def _read(found: Iterable[tuple[Text, str]]) -> Iterator[Text]:
    """Yield what was found, once at each place, within the bound."""
    left, seen = MAX_SPELLED, set()
    for text, spelled in found:
        if (text.steps, spelled) not in seen:
            seen.add((text.steps, spelled))
            yield Text(text.steps, spelled, plain(spelled), text.key)
            left -= max(len(spelled), LEAST)
            if left < 0:
                return


def readable_run(text: str) -> bool:
    """Say whether a run in a text spells something readable."""
    return next(_runs(text), None) is not None


def encoded(texts: Iterable[Text]) -> Iterator[Finding]:
    """Find encoded prose in what ought to be readable: the definitions of tools."""
    for text in texts:
        for match, spelled in _runs(text.raw):
            shown = excerpt(text.raw, *match.span(), f"{spelled[:200]!r}")
            if COMMAND.search(spelled):
                yield Finding("encoded-command", Category.EXECUTION, Severity.HIGH, text.path, shown)
            else:
                yield Finding("encoded-text", Category.INVISIBLE, Severity.MEDIUM, text.path, shown)
            break


def _spelled(raw: str) -> Iterator[str]:
    """Yield what runs spell, and what runs and disguises in that spell: twice is not rare."""
    for _, spelled in _runs(raw):
        yield spelled
        yield from undisguised(spelled)
        for _, inner in _runs(spelled):
            yield inner


def _runs(raw: str) -> Iterator[tuple[re.Match[str], str]]:
    if len(raw) < SHORTEST:
        return
    written = raw.encode("utf-8", "replace")
    kinds: Sequence[tuple[re.Pattern[str], Callable[[str], str]]]
    # Most texts have nothing in a row that a run would have.
    if b"x" * SHORTEST not in written.translate(_BASE64_DIGITS):
        kinds = _KINDS[1:] if "\\x" in raw else ()
    else:
        kinds = _KINDS if "\\x" in raw or b"x" * 36 in written.translate(_HEX_DIGITS) else _KINDS[:1]
    for pattern, decode in kinds:
        for match in pattern.finditer(raw):
            spelled = decode(match[0][:MAX_RUN])
            if spelled:
                yield match, spelled


def _base64(run: str) -> str:
    bare = run.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _readable(b64decode(bare + "=" * (-len(bare) % 4), validate=True))
    except (binascii.Error, ValueError):
        return ""


def _hex(run: str) -> str:
    return _readable(bytes.fromhex(run.replace("\\x", "")))


def _digits(pattern: str) -> bytes:
    """Return a table that turns the characters of a class into an x, all others into a point."""
    return bytes(ord("x") if re.match(pattern, chr(byte)) else ord(".") for byte in range(256))


_BASE64_DIGITS, _HEX_DIGITS = _digits("[A-Za-z0-9+/_-]"), _digits("[0-9a-fA-F]")


def _readable(data: bytes) -> str:
    """Return text of letters and spaces, as people write it; empty for anything else that happens to decode."""
    try:
        text = _text(data)
    except (UnicodeDecodeError, zlib.error):
        return ""
    shown = text.replace("\n", " ").replace("\t", " ").replace("\r", " ")
    letters, spaces = sum(map(str.isalpha, shown)), shown.count(" ")
    prose = letters >= FEWEST_LETTERS and (letters + spaces) * 10 >= len(shown) * 6
    if not shown.isprintable():
        return ""
    nested = BASE64.fullmatch(shown.strip()) is not None
    return text if (prose and " " in shown.strip()) or COMMAND.search(shown) or nested else ""


def _text(data: bytes) -> str:
    if data.startswith(INFLATED):
        data = zlib.decompressobj(wbits=47).decompress(data, MAX_RUN)  # of either kind
    if len(data) % 2 == 0 and (data[1::2].count(0) or data[::2].count(0)) * 4 > len(data):
        return data.decode("utf-16-le" if data[1::2].count(0) else "utf-16-be")
    return data.decode("utf-8")


_KINDS = ((BASE64, _base64), (HEX, _hex))
