"""The reading every dialect's whole answer goes through: what cannot be read is stopped or told, what can is rewritten or left.

What a call looks like in it, and what stands in its place, is the dialect's business.
"""

from __future__ import annotations

from collections.abc import Callable

import orjson

from agentsh_net.core.dialects.base import Dialect, Step
from agentsh_net.core.dialects.call_signs import may_hide_call
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import Reading

# Judges what was read, and returns the text that the client may have instead; None: the text as it is. May raise ProtocolError.
Rewrite = Callable[[Reading, Output], bytes | None]


def inspect_whole(
    dialect: Dialect, data: bytes, rewrite: Rewrite, *, fail_closed: bool, enforce: bool
) -> Step:
    """Return what the client gets for `data`: byte for byte the same where no call is refused, or nothing is enforced."""
    if dialect.harmless(data):
        return Step(data)

    def error(message: str) -> bytes:
        return dialect.error(502, message)

    out = Output(fail_closed=fail_closed, error_frame=error, enforce=enforce)
    changed = None
    try:
        reading = strict_json.read(data)
    except strict_json.DivergentError as problem:
        if problem.leading is not None and dialect.harmless(problem.leading):
            out.fault("malformed_json", str(problem))
        else:
            out.fault("unreadable_json", str(problem), must_cut=not fail_closed)
    except ProtocolError as problem:
        out.fault("malformed_json", str(problem))
    else:
        if "invalid_utf8" in reading.flaws:
            out.fault("invalid_utf8", "the answer is not UTF-8")
        if not out.end:
            changed = _rewritten(rewrite, reading, out)
    if not enforce or changed is None:
        out.relay(data)
    else:
        out.write(changed)
    return out.step()


def is_harmless(data: bytes, speaks: Callable[[bytes], bool] = may_hide_call) -> bool:
    """Say whether a whole answer is JSON for any parser and does not speak of a call, so that it need not be read again."""
    if speaks(data):
        return False
    try:
        orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return True


def _rewritten(rewrite: Rewrite, reading: Reading, out: Output) -> bytes | None:
    try:
        return rewrite(reading, out)
    except ProtocolError as problem:
        # Its calls were judged, but the text cannot be written without those that were refused.
        out.fault("malformed_json", str(problem), must_cut=True)
        return None
