"""What a server's message holds that cannot be read for certain, read as leniently as any of its clients might.

Such a message may pass (`fail_closed: false`), but not with what policy blocks in a plain one: a client that takes `"1"` for 1, or
NaN for a number, has read it. Whether it passes is `judging`'s business, what a plain one holds `gate`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentsh_net.core.configuration.settings import Mcp
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.inspect.contents import inspect_content
from agentsh_net.core.inspect.custom import Custom
from agentsh_net.core.inspect.findings import Finding
from agentsh_net.core.mcp import jsonrpc
from agentsh_net.core.mcp.gate import Asking, embedded
from agentsh_net.core.mcp.glance import BOM, ELICITATION, HANDSHAKES, LIST, SAMPLING, URL_ELICITATION_REQUIRED
from agentsh_net.core.model import Verdict
from agentsh_net.core.values import strict_json
from agentsh_net.core.verdicts import results_policy, server_asks


@dataclass(frozen=True, slots=True)
class Held:
    """What a message holds: what it asks of the client, what detectors found, and the verdict that blocks it or would."""

    asked: tuple[tuple[Asking, Verdict], ...] = ()
    found: tuple[Finding, ...] = ()
    verdict: Verdict | None = None
    danger: str = ""  # what some client may take it for, which never passes

    def decides(self, verdict: Verdict, why: str) -> Verdict:
        """Return the verdict on a message that may pass by `verdict` because of `why`: that of what it holds, if that blocks or would."""
        if self.verdict is None or verdict.blocked or verdict.would is not None:
            return verdict
        return replace(self.verdict, reason=f"{why}, and {self.verdict.reason}")


NOTHING = Held()

_ENVELOPE = frozenset(("jsonrpc", "id", "method"))


def held(mcp: Mcp, server_id: str, data: bytes, customs: Sequence[Custom] = ()) -> Held:
    """Return what a message holds; where no reader makes JSON of it, what it says as text."""
    if jsonrpc.crowded(data):
        return NOTHING  # which never passes
    try:
        value = strict_json.read(data.removeprefix(BOM)).value
    except ProtocolError:
        value = data.decode("utf-8", "replace")
    messages = [m for m in (value if isinstance(value, list) else [value]) if isinstance(m, dict)]
    asked = tuple((a, server_asks.judge(mcp, server_id, a.method)) for m in messages for a in _askings(m))
    found: tuple[Finding, ...] = ()
    if mcp.output_inspection.enabled:
        shown = [{k: v for k, v in m.items() if k not in _ENVELOPE} for m in messages]
        found = inspect_content(shown[0] if len(shown) == 1 else shown or value, customs)
    verdicts = [verdict for _, verdict in asked] + ([results_policy.judge(mcp, found)] if found else [])
    decisive = next((v for v in verdicts if v.blocked or v.would is not None), None)
    return Held(asked, found, decisive, _passes_for(messages))


def _passes_for(messages: Iterable[dict[str, Any]]) -> str:
    """Say what a client may take a message for that is no answer to anything here; empty where that is of no consequence.

    It may have thrown away what was taken here for the answer (a batch, a member it does not know) and wait for this one: neither
    pins nor what a server says of itself may miss it.
    """
    shown = {method for m in messages for method in shown_by(m.get("result"))}
    if LIST in shown:
        return "a list of tools under an id that nobody used, or that peers may read differently"
    if shown:
        return "a handshake under an id that nobody used, or that peers may read differently"
    return ""


def shown_by(result: Any) -> frozenset[str]:
    """Return the methods whose answer a client takes a result for that shows it tools, or a server."""
    keys = set(map(str.casefold, result)) if isinstance(result, dict) else set()
    lists = frozenset((LIST,)) if "tools" in keys else frozenset()
    return lists | (HANDSHAKES if keys & {"protocolversion", "supportedversions"} else frozenset())


def _askings(message: dict[str, Any]) -> Iterator[Asking]:
    id_, method, error = message.get("id"), message.get("method"), message.get("error")
    known = id_ if isinstance(id_, str) or type(id_) is int else None
    if isinstance(method, str) and method in {SAMPLING, ELICITATION}:
        yield Asking(0, known, method, message.get("params"))
    for place in (message.get("result"), message.get("params")):
        if isinstance(place, dict):
            for key, value in place.items():
                if key.casefold() == "inputrequests":
                    yield from embedded(0, known, value)
    if isinstance(error, dict) and error.get("code") == URL_ELICITATION_REQUIRED:
        yield Asking(0, known, ELICITATION, error.get("data"), embedded=True)
