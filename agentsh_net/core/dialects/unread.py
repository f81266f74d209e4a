"""Which whole answers leave unread: those in which no reader could find a call.

An object in ASCII without a backslash in which no mark of a call stands (`call_signs`) leaves without being parsed. A parser
would find no call in it, and neither would any other reader, of JSON or of something like it, since nobody gets at letters that are
not there:

1. Bytes. Each is a character, and the same one to everybody: nothing for a decoder to drop or to join. An answer whose head names a
   charset in which it may be another (UTF-7, ISO-2022-JP, EBCDIC) does not come here (`http_head`); UTF-16 has NULs, which are a mark.
2. Escapes. There is none, be it one of JSON's or of those that only lenient readers know.
3. Framing. Who takes such a text for an event stream, or for lines of JSON, finds no letters in that either. (Who joins lines by
   nothing reads a stream, which does not come here.)
4. Its end. A text that was cut short does not end in a brace: it is parsed, and told of. One that is broken within is not told of.

What else wants an answer read, reads it itself: usage is charged from the trail, and DLP restores by a dialect to which nothing is
harmless. A dialect with signs of its own, some of them quoted as JSON quotes them, has the text parsed (`is_harmless_json`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import orjson

from agentsh_net.core.dialects.call_signs import may_hide_call

_BACKSLASH: Final = b"\\"


def is_harmless(data: bytes) -> bool:
    """Say whether a whole answer does not speak of a call to any parser, so that it need not be read again."""
    return not may_hide_call(data) and (_is_plain_object(data) or _is_json(data))


def is_harmless_json(data: bytes, speaks: Callable[[bytes], bool]) -> bool:
    """Say whether a whole answer is JSON for any parser and does not speak of a call by what a dialect takes for signs of one."""
    return not speaks(data) and _is_json(data)


def _is_plain_object(data: bytes) -> bool:
    """Say whether a text is an object that says to any reader what stands there, and no more (see above)."""
    return data[:1] == b"{" and data.rstrip()[-1:] == b"}" and data.find(_BACKSLASH) < 0 and data.isascii()


def _is_json(data: bytes) -> bool:
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True
