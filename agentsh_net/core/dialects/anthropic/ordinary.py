"""The frames of an ordinary Anthropic answer, known by heart: every byte of them but some plain values is foreseen.

Such a frame is valid JSON on one line, in ASCII, without an escape but in a call's arguments; no key that decides anything stands in
it twice or in another case; the blocks it opens are text. So all clients read the same in it, and the begin of a call in none. What is
not exactly so is read in full, by `event`. What a frame means for the answer is `stream`'s business.
"""

from __future__ import annotations

import re
from typing import Final

import orjson

from agentsh_net.core.dialects.prose import Shape

# No decisive key (`blocks.DECISIVE`) but `id` and `type`, which are counted.
_KEY: Final = rb'"(?!(?:content_block|content|delta|index|input|message|name|partial_json|server_name|toolset_name)")[a-z0-9_]{1,64}":'
_SCALAR: Final = rb'(?:"[ !#-\[\]-~]*"|null|true|false|0|[1-9][0-9]{0,14})'
_FLAT: Final = rb"\{(?:%b%b(?:,%b%b)*)?\}" % (_KEY, _SCALAR, _KEY, _SCALAR)
_NESTED: Final = rb"\{(?:%b(?:%b|%b)(?:,%b(?:%b|%b))*)?\}" % (_KEY, _SCALAR, _FLAT, _KEY, _SCALAR, _FLAT)
_MEMBER: Final = rb"%b(?:%b|%b)" % (_KEY, _SCALAR, _NESTED)
_MESSAGE: Final = re.compile(
    rb'event: message_start\ndata: \{"type":"message_start","message":\{(?:%b,)*"content":\[\](?:,%b)*\} *\}\n\n'
    % (_MEMBER, _MEMBER)
)
_BLOCK: Final = re.compile(
    rb'event: content_block_start\ndata: \{"type":"content_block_start","index":(0|[1-9][0-9]{0,5}),'
    rb'"content_block":\{"type":"(?:text","text":""|thinking","thinking":""(?:,"signature":"")?)\} *\}\n\n'
)
# What a model says or thinks.
PROSE: Final = Shape(
    re.compile(
        rb'event: content_block_delta\ndata: \{"type":"content_block_delta","index":(?:0|[1-9][0-9]{0,5}),'
        rb'"delta":\{"type":"(?:text_delta","text|thinking_delta","thinking)":"'
    ),
    re.compile(rb'"\} *\}\n\n'),  # Anthropic hides the text's length by spaces
)
# A piece of a call's arguments: a string of JSON, in which escapes say what they say.
_ARGUMENTS: Final = re.compile(
    rb'event: content_block_delta\ndata: \{"type":"content_block_delta","index":(0|[1-9][0-9]{0,5}),'
    rb'"delta":\{"type":"input_json_delta","partial_json":("[ !#-\[\]-~]*(?:\\[ -~][ !#-\[\]-~]*)*")\} *\}\n\n'
)
_DELTA: Final = re.compile(
    rb'event: message_delta\ndata: \{"type":"message_delta","delta":\{"stop_reason":%b,"stop_sequence":%b\},"usage":%b *\}\n\n'
    % (_SCALAR, _SCALAR, _NESTED)
)
_STOP: Final = re.compile(rb'event: message_stop\ndata: \{"type":"message_stop" *\}\n\n')


def begins_message(frame: bytes) -> bool:
    """Say whether this is an ordinary `message_start`, of a message without content."""
    return (
        _MESSAGE.fullmatch(frame) is not None
        and frame.count(b'"type":') == 2  # the event's and the message's
        and frame.count(b'"id":') <= 1
    )


def ends_content(frame: bytes) -> bool:
    """Say whether this is an ordinary `message_delta`, whatever it gives as the reason."""
    return _DELTA.fullmatch(frame) is not None and frame.count(b'"type":') == 1 and frame.count(b'"id":') == 0


def ends_message(frame: bytes) -> bool:
    """Say whether this is an ordinary `message_stop`."""
    return _STOP.fullmatch(frame) is not None


def piece_of_arguments(frame: bytes) -> tuple[int, str] | None:
    """Return the index and the text of this ordinary piece of a call's arguments; None where it is none."""
    match = _ARGUMENTS.fullmatch(frame)
    if match is None:
        return None
    try:
        return int(match[1]), orjson.loads(match[2])
    except orjson.JSONDecodeError:  # an escape that only some parsers read
        return None


def opened_block(frame: bytes) -> int | None:
    """Return the index of the block of text or thoughts that this ordinary `content_block_start` opens; None where it is none."""
    match = _BLOCK.fullmatch(frame)
    return None if match is None else int(match[1])
