"""The reading every dialect's whole answer goes through: what cannot be read is stopped or told, what can is rewritten or left.

What a call looks like in it, and what stands in its place, is the dialect's business; what leaves without being read, core.dialects.unread's.
"""

from __future__ import annotations

from collections.abc import Callable

from agentsh_net.core.dialects.base import Judge, Step, Whole
from agentsh_net.core.dialects.output import Output
from agentsh_net.core.dialects.unread import is_harmless
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import strict_json
from agentsh_net.core.values.strict_json import Reading

# Judges the calls in a text and what was read of it, and returns what the client may have instead; None: the text as it is.
# May raise ProtocolError.
Rewrite = Callable[[bytes, Reading, Judge, Output], bytes | None]


def whole(
    rewrite: Rewrite, error: Callable[[int, str], bytes], harmless: Callable[[bytes], bool] = is_harmless
) -> Whole:
    """Return what a dialect makes of whole answers."""

    def error_body(message: str) -> bytes:
        return error(502, message)

    def body(data: bytes, judge: Judge, *, fail_closed: bool, enforce: bool = True) -> Step:
        if harmless(data):
            return Step(data)
        out = Output(fail_closed=fail_closed, error_frame=error_body, enforce=enforce)
        changed = None
        try:
            reading = strict_json.read(data)
        except strict_json.DivergentError as problem:
            if problem.leading is not None and harmless(problem.leading):
                out.fault("malformed_json", str(problem))
            else:
                out.fault("unreadable_json", str(problem), must_cut=not fail_closed)
        except ProtocolError as problem:
            out.fault("malformed_json", str(problem))
        else:
            if "invalid_utf8" in reading.flaws:
                out.fault("invalid_utf8", "the answer is not UTF-8")
            if not out.end:
                changed = _rewritten(rewrite, data, reading, judge, out)
        if not enforce or changed is None:
            out.relay(data)
        else:
            out.write(changed)
        return out.step()

    return body


def _rewritten(rewrite: Rewrite, data: bytes, reading: Reading, judge: Judge, out: Output) -> bytes | None:
    try:
        return rewrite(data, reading, judge, out)
    except ProtocolError as problem:
        # Its calls were judged, but the text cannot be written without those that were refused.
        out.fault("malformed_json", str(problem), must_cut=True)
        return None
