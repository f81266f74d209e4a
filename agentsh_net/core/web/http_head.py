"""HTTP/1.1 message heads, read strictly: two readings of one message are how requests are smuggled.

What is not exactly RFC 9112 is refused. Bodies, sockets and routes are not its business.

A head is kept as the bytes that came in, so that what is forwarded is what was sent, less what ends at this hop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from agentsh_net.core.errors import ProtocolError

MAX_HEAD = 64 << 10  # bytes; nginx takes 4 x 8 KiB, llhttp 80 KiB; cookies and tool tokens are far below
MAX_FIELDS = 128  # Apache's LimitRequestFields is 100
MAX_LENGTH_DIGITS = 15  # a petabyte; keeps int() of a hostile length trivial

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"
_TEXT = rb"[\t\x20-\x7e\x80-\xff]"  # no NUL, no CR, no LF, no other control
# Every step is decided by its next byte, so matching is linear. (No possessive groups: Python before 3.11.5 matches them wrongly.)
_FIELD = _TOKEN + rb"+:" + _TEXT + rb"*"
_FIELDS = rb"((?:\r\n" + _FIELD + rb")*)\r\n\r\n"
_REQUEST_LINE = rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32}) ([\x21\x22\x24-\x7e]+) HTTP/1\.([01])"
_REQUEST = re.compile(_REQUEST_LINE + _FIELDS)
_RESPONSE = re.compile(rb"(HTTP/1\.([01]) ([1-5][0-9][0-9])(?: " + _TEXT + rb"*)?)" + _FIELDS)
_FIRST_LINE = re.compile(_REQUEST_LINE)
TEXT = re.compile(_TEXT)  # one byte that may stand in a field's value
_OTHER_VERSION = re.compile(rb"[A-Z]{1,32} \S{1,8192} HTTP/(?!1\.[01])[0-9](?:\.[0-9])?\r?")

# RFC 9110 section 7.6.1 names the fields that end at this hop.
_HOP = (
    b"connection", b"keep-alive", b"proxy-connection", b"proxy-authorization", b"te", b"trailer", b"transfer-encoding",
    b"upgrade", b"http2-settings",
)  # fmt: skip
# ... and what is answered or written anew here.
_REQUEST_ENDS = (*_HOP, b"host", b"expect", b"content-length")
# What describes the bytes of a body, and is wrong once the body was rewritten (RFC 9110 section 8, RFC 9530).
_OF_THE_BODY = (
    b"content-length", b"content-encoding", b"etag", b"content-md5", b"digest", b"content-digest", b"repr-digest",
    b"accept-ranges", b"content-range",
)  # fmt: skip


def _by_letter(names: Iterable[bytes]) -> Iterable[tuple[bytes, bytes]]:
    """Yield each first letter with the rests of the names behind it, so that a field that is not looked for costs least."""
    for letter, group in groupby(sorted(names), key=lambda name: name[:1]):
        yield letter, b"(?:" + b"|".join(name[1:] for name in group) + b")"


def _values_of(names: Iterable[bytes]) -> re.Pattern[bytes]:
    """Find names and values in fields in lower case; one literal to begin with, LF."""
    alternatives = b"|".join(letter + rests for letter, rests in _by_letter(names))
    return re.compile(rb"\n(" + alternatives + rb"):[ \t]*([^\r]*[^\r\t ])?")


def _none_of(names: Iterable[bytes]) -> re.Pattern[bytes]:
    """Match fields, each after its CRLF, none of which has one of these names."""
    alternatives = b"|".join(
        b"[%b%b](?i:%b)" % (letter, letter.upper(), rests) for letter, rests in _by_letter(names)
    )
    return re.compile(rb"(?:\r\n(?!(?:" + alternatives + rb"):)" + _FIELD + rb")*")


def _whole(names: Iterable[bytes]) -> re.Pattern[bytes]:
    """Find whole fields, each with the CRLF before it."""
    return re.compile(rb"\r\n(?:" + b"|".join(sorted(names)) + rb"):[^\r]*", re.IGNORECASE)


_REQUEST_FACTS = _values_of({*_REQUEST_ENDS, b"origin", b"content-encoding"})
_READ_OF_ANSWERS = (*_HOP, b"content-length", b"content-encoding", b"content-type")
_ANSWER_FACTS = _values_of(_READ_OF_ANSWERS)
_UNREAD_OF_ANSWERS = _none_of(_READ_OF_ANSWERS)
_REQUEST_LEAVES_OUT = _whole(_REQUEST_ENDS)
_REQUEST_LEAVES_OUT_PLAIN = _whole({*_REQUEST_ENDS, b"accept-encoding"})
_ANSWER_LEAVES_OUT = _whole(_HOP)
_ANSWER_LEAVES_OUT_REWRITTEN = _whole({*_HOP, *_OF_THE_BODY})
_ENDS_HERE = frozenset(_HOP)
_REQUEST_ID = re.compile(rb"\r\nrequest-id:[ \t]*([^\r]*)", re.IGNORECASE)
_X_REQUEST_ID = re.compile(rb"\r\nx-request-id:[ \t]*([^\r]*)", re.IGNORECASE)
# Charsets in which a byte of ASCII is that character, whatever stands around it.
_TRANSPARENT = re.compile(
    rb"""charset[ \t]*=[ \t]*(["']?)(?:utf-?8|(?:us-)?ascii|iso-8859-1|latin-?1|windows-1252)\1(?=[ \t]*(?:[;,]|$))"""
)
_TLS_HANDSHAKE = b"\x16\x03"  # a record's type and major version (RFC 8446 section 5.1)
_ORDINARY = frozenset((b"close", b"keep-alive", b""))
_SINGLE = frozenset((b"host", b"content-length", b"transfer-encoding", b"expect", b"origin"))


class RequestHead(NamedTuple):
    """A request's head. `length` is None without a Content-Length.

    `fields` are all as they came, each after its CRLF; what is told of them is in lower case.
    """

    method: str
    target: bytes
    minor: int  # of HTTP/1.x
    fields: bytes
    host: bytes
    length: int | None
    chunked: bool
    keep_alive: bool
    expects_continue: bool
    websocket: bool
    origin: bytes | None
    encoding: str  # Content-Encoding, empty when none
    nominated: tuple[bytes, ...]  # fields that Connection names: they end here too

    @property
    def has_body(self) -> bool:
        """Say whether body bytes follow the head."""
        return self.chunked or bool(self.length)


class ResponseHead(NamedTuple):
    """A response's head; `line` is the status line without its CRLF, `fields` as in a request.

    `verbatim`: nothing of it ends here, so that it may travel on as it came.
    """

    line: bytes
    fields: bytes
    length: int | None
    status: int
    chunked: bool
    keep_alive: bool
    content_type: str  # lower case, without parameters
    encoding: str
    opaque: bool  # in a charset in which letters may be written as other bytes
    nominated: tuple[bytes, ...]
    verbatim: bool
    plain_json: bool  # a 200 with JSON as it is
    # Fields that end here, whole, each after its CRLF; not those that Connection names.
    ending: tuple[bytes, ...]

    @property
    def request_id(self) -> str:
        """What the provider calls the request."""
        found = _REQUEST_ID.search(self.fields) or _X_REQUEST_ID.search(self.fields)
        return found[1].rstrip(b" \t")[:128].decode("ascii", "replace") if found else ""

    def has_body(self, method: str) -> bool:
        """Say whether a body follows (RFC 9112 section 6.3), given the request's method."""
        return method != "HEAD" and self.status not in (204, 304) and self.length != 0


def find_head(buffer: bytes) -> int:
    """Return the length of the request head at the start of `buffer`, or 0 while it is incomplete.

    Raises ProtocolError as soon as no further bytes could make a head of it.
    """
    end = buffer.find(b"\r\n\r\n")
    if 0 <= end <= MAX_HEAD - 4:
        return end + 4
    if end >= 0 or len(buffer) >= MAX_HEAD:
        raise ProtocolError(f"the request head is longer than {MAX_HEAD} bytes", status=431)
    if buffer.startswith(_TLS_HANDSHAKE):
        raise ProtocolError("this port speaks plain HTTP/1.1, and TLS came: write http:// in the base URL")
    if buffer and not buffer[:1].isalpha():
        raise ProtocolError("this port speaks plain HTTP/1.1; what came does not begin like a request")
    line, newline, _ = buffer.partition(b"\n")
    if newline and not (line.endswith(b"\r") and _FIRST_LINE.fullmatch(line[:-1])):
        raise _bad_request_line(line)
    return 0


def parse_request(raw: bytes) -> RequestHead:
    """Return the head that `raw` (up to and with the blank line) is. Raises ProtocolError with the status to answer."""
    match = _REQUEST.fullmatch(raw)
    if match is None:
        line, _, _ = raw.partition(b"\r\n")
        raise _bad_request_line(line) if not _FIRST_LINE.fullmatch(line) else _bad_fields(raw)
    method, target, minor, fields = match.groups()
    if fields.count(b"\r\n") > MAX_FIELDS:
        raise ProtocolError(f"more than {MAX_FIELDS} header fields", status=431)
    facts = _facts(fields, _REQUEST_FACTS)
    one_one = minor == b"1"
    host = facts.get(b"host")
    if host is None and one_one:
        raise ProtocolError("an HTTP/1.1 request needs a Host field")
    chunked, length = _framing(facts, one_one=one_one)
    expect = facts.get(b"expect")
    if expect is not None and expect != b"100-continue":
        raise ProtocolError("the only expectation known here is 100-continue", status=417)
    keep_alive, nominated = _connection(facts.get(b"connection"))
    upgrade = facts.get(b"upgrade")
    encoding = facts.get(b"content-encoding")
    return RequestHead(
        method.decode("ascii"),
        target,
        1 if one_one else 0,
        fields,
        host or b"",
        length,
        chunked,
        one_one and keep_alive is not False,
        expect is not None and one_one,
        upgrade is not None and b"websocket" in _tokens(upgrade),
        facts.get(b"origin"),
        encoding.decode("ascii", "replace") if encoding else "",
        nominated,
    )


def is_opaque(content_type: bytes) -> bool:
    """Say whether a Content-Type, in lower case, names a charset in which letters may be written as other bytes."""
    return b"charset" in _TRANSPARENT.sub(b"", content_type)


def parse_response(raw: bytes) -> ResponseHead:
    """Return the head that `raw` (up to and with the blank line) is. Raises ProtocolError where it could be read in two ways."""
    match = _RESPONSE.fullmatch(raw)
    if match is None:
        raise ProtocolError(
            "the upstream's answer does not begin with a well-formed HTTP/1.1 head", status=502
        )
    line, minor, status, fields = match.groups()
    if fields.count(b"\r\n") > MAX_FIELDS:
        raise ProtocolError(f"the upstream sent more than {MAX_FIELDS} header fields", status=502)
    one_one = minor == b"1"
    try:
        facts = _facts(fields, _ANSWER_FACTS)
        chunked, length = _framing(facts, one_one=one_one)
    except ProtocolError as error:
        raise ProtocolError(f"the upstream's answer: {error}", status=502) from error
    connection = facts.get(b"connection")
    keep_alive, nominated = (None, ()) if connection is None else _connection(connection)
    encoding = facts.get(b"content-encoding")
    ends_nothing = _ENDS_HERE.isdisjoint(facts)
    described = facts.get(b"content-type", b"")
    content_type = described.partition(b";")[0].rstrip(b" \t")
    opaque = is_opaque(described)
    return ResponseHead(
        line,
        fields,
        length,
        int(status),
        chunked,
        one_one if keep_alive is None else keep_alive,
        content_type.decode("ascii", "replace"),
        encoding.decode("ascii", "replace") if encoding else "",
        opaque,
        nominated,
        one_one and ends_nothing,
        content_type == b"application/json" and status == b"200" and not (encoding or opaque),
        () if ends_nothing else tuple(_ANSWER_LEAVES_OUT.findall(fields)),
    )


def tells_nothing(lines: Iterable[bytes]) -> bool:
    """Say whether these are well-formed fields of which no answer's reading depends on any."""
    return _UNREAD_OF_ANSWERS.fullmatch(b"\r\n" + b"\r\n".join(lines)) is not None


def forwarded_request(head: RequestHead, *, plain: bool) -> bytes:
    """Return the fields that travel on, each after its CRLF. With `plain` Accept-Encoding is left out: the caller writes its own."""
    fields = (_REQUEST_LEAVES_OUT_PLAIN if plain else _REQUEST_LEAVES_OUT).sub(b"", head.fields)
    return _without(fields, head.nominated) if head.nominated else fields


def forwarded_response(head: ResponseHead, *, rewritten: bool) -> bytes:
    """Return the fields that travel on, each after its CRLF. With `rewritten` those that describe the body are left out."""
    if rewritten:
        fields = _ANSWER_LEAVES_OUT_REWRITTEN.sub(b"", head.fields)
    else:
        fields = head.fields
        for field in head.ending:  # a search for each field's name takes ten times as long
            fields = fields.replace(field, b"", 1)
    return _without(fields, head.nominated) if head.nominated else fields


def _facts(fields: bytes, known: re.Pattern[bytes]) -> dict[bytes, bytes]:
    """Return the fields that matter, in lower case. Raises ProtocolError where one may not repeat and does."""
    found = known.findall(fields.lower())
    facts = dict(found)
    return facts if len(facts) == len(found) else _joined(found)


def _joined(found: list[tuple[bytes, bytes]]) -> dict[bytes, bytes]:
    """Put the values of fields that repeat into one list each (RFC 9110 section 5.3)."""
    facts: dict[bytes, bytes] = {}
    for name, value in found:
        if name not in facts:
            facts[name] = value
        elif name in _SINGLE:
            raise ProtocolError(f"more than one {name.decode()} field")
        else:
            facts[name] += b", " + value
    return facts


def _connection(value: bytes | None) -> tuple[bool | None, tuple[bytes, ...]]:
    """Return what Connection says of the connection (None: nothing), and the fields it names as ending here."""
    if value is None:
        return None, ()
    tokens = _tokens(value)
    if b"close" in tokens:
        keep_alive: bool | None = False
    else:
        keep_alive = True if b"keep-alive" in tokens else None
    return keep_alive, tuple(token for token in tokens if token not in _ORDINARY)


def _tokens(value: bytes) -> list[bytes]:
    return [token.strip(b" \t") for token in value.split(b",")]


def _framing(facts: dict[bytes, bytes], *, one_one: bool) -> tuple[bool, int | None]:
    """RFC 9112 section 6: one Content-Length of digits, or Transfer-Encoding: chunked, never both, never twice."""
    length = facts.get(b"content-length")
    coding = facts.get(b"transfer-encoding")
    if coding is not None:
        if length is not None:
            raise ProtocolError("Content-Length and Transfer-Encoding together")
        if coding != b"chunked" or not one_one:
            raise ProtocolError("the only transfer coding known here is chunked, in HTTP/1.1")
        return True, None
    if length is None:
        return False, None
    if not (length.isdigit() and len(length) <= MAX_LENGTH_DIGITS):
        raise ProtocolError("Content-Length is not a number of bytes")
    return False, int(length)


def _without(fields: bytes, names: tuple[bytes, ...]) -> bytes:
    kept = [line for line in fields.split(b"\r\n")[1:] if line.partition(b":")[0].lower() not in names]
    return b"".join(b"\r\n" + line for line in kept)


def _bad_request_line(line: bytes) -> ProtocolError:
    if _OTHER_VERSION.fullmatch(line):
        return ProtocolError("only HTTP/1.0 and HTTP/1.1 are spoken here", status=505)
    return ProtocolError("the request line is not METHOD TARGET HTTP/1.1")


def _bad_fields(raw: bytes) -> ProtocolError:
    if re.search(rb"\r\n[ \t]", raw):
        return ProtocolError("a header field is folded over several lines (RFC 9112 section 5.2 forbids it)")
    if re.search(rb"[^\r]\n|\r[^\n]|\x00", raw):
        return ProtocolError("a header field holds a bare CR, a bare LF or a NUL")
    return ProtocolError("a header field is not NAME: VALUE")
