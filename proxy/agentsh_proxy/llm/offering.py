"""The tools that requests offer: read once per list of tools, remembered for the answers, told of, and hidden where policy says so.

What an offer means is core.trust.offers' business; a list that was seen before under the same policy costs its hash.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from agentsh_net.core.audit.events import ToolAltered
from agentsh_net.core.dialects.request_offers import added_offers, lists, offers, referred, without
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.model import Candidate, PinState, ToolCall
from agentsh_net.core.trust.offers import NOTHING, Altered, Lessons, joined
from agentsh_net.core.trust.pins import PinEffect, effect
from agentsh_net.core.values import json_splice
from agentsh_net.core.values.recent import remember
from agentsh_net.core.verdicts.rules import ROOT
from agentsh_proxy.llm.reporting import Reporter, Subject
from agentsh_proxy.llm.view import View

# Lists of tools remembered per policy: agents use a handful each; one of 200 tools takes some kilobytes.
MAX_LISTS: Final = 256
# Sessions of which the last lists are remembered, for answers that are fetched by a later request, or to one that goes on without tools.
MAX_SESSIONS: Final = 1024
MAX_REMEMBERED: Final = 8  # an agent and its helpers; each is a reference to what the policy remembers anyway

_MAX_NAME: Final = 256  # characters of a name in an event; the APIs take 128


class _Taught(NamedTuple):
    """What a session's last lists taught, each and together."""

    lists: tuple[Lessons, ...] = ()
    all: Lessons = NOTHING


_UNTAUGHT: Final = _Taught()


class Offering:
    """What the requests of one worker offered."""

    __slots__ = ("_by_session", "_proposed", "_reporter", "_told")

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._by_session: OrderedDict[str, _Taught] = OrderedDict()
        self._proposed: OrderedDict[tuple[str, str], ToolCall] = OrderedDict()
        self._told: OrderedDict[tuple[str, str, str], None] = OrderedDict()

    def read(
        self, request: Mapping[str, Any], view: View, subject: Subject, *, adds_tools: bool = False
    ) -> Lessons:
        """Return what a request's tools teach; tell of those that are not what their server offers."""
        found = lists(request)
        added = added_offers(request) if adds_tools else []
        if not (found or added):
            return self.last(subject.session_id)
        lessons = view.teacher.learn([*offers(found), *added]) if added else _learned(found, view)
        for altered in lessons.altered:
            self._tell(altered, view, subject)
        known = self._by_session.get(subject.session_id, _UNTAUGHT)
        if all(each is not lessons for each in known.lists):
            kept = (*known.lists, lessons)[-MAX_REMEMBERED:]
            remember(self._by_session, subject.session_id, _Taught(kept, joined(kept)), MAX_SESSIONS)
        return lessons

    def last(self, session_id: str) -> Lessons:
        """Return what the session's last requests taught: one that goes on, or fetches an answer later, repeats no tools."""
        return self._by_session.get(session_id, _UNTAUGHT).all

    def propose(self, session_id: str, call: ToolCall) -> None:
        """Remember a call of an MCP server that an answer proposes: a later request may approve it by its id alone."""
        if call.server_name and call.call_id:
            remember(self._proposed, (session_id, call.call_id), call, MAX_SESSIONS)

    def proposed(self, session_id: str, call_id: str) -> ToolCall | None:
        """Return the call that an answer proposed under this id."""
        return self._proposed.get((session_id, call_id))

    def _tell(self, altered: Altered, view: View, subject: Subject) -> None:
        """Tell once a session of a tool that was changed on its way to the model."""
        mcp = view.snapshot.config.sandbox.mcp
        does = effect(PinState.CHANGED, mcp.version_pinning)
        key = subject.session_id, altered.offer, altered.shown_hash
        if does is PinEffect.PASS or key in self._told:
            return
        remember(self._told, key, None, MAX_SESSIONS)
        refused = does is PinEffect.BLOCK and altered.surely
        about: Candidate = altered.about
        self._reporter.emit(
            ToolAltered(
                session_id=subject.session_id,
                action="block" if refused and view.enforce else "allow",
                would="block" if refused and not view.enforce else None,
                reason=f"a request shows it with another {' and '.join(altered.fields)} than its server does",
                rule=f"{ROOT}.version_pinning.on_change",
                dialect=subject.dialect,
                server_id=about.server_id,
                tool_name=about.tool,
                shown_name=altered.offer[:_MAX_NAME].encode("utf-8", "backslashreplace").decode(),
                tool_hash=altered.shown_hash,
                previous_hash=about.tool_hash,
                changes=[{"path": f"$.{name}", "kind": "changed"} for name in altered.fields],
            )
        )


def reduced(request: Mapping[str, Any], plain: bytes, lessons: Lessons) -> bytes:
    """Return a request without the tools that policy denies; the same object where there are none, or it cannot be edited."""
    hidden = lessons.hidden
    if b"tool_reference" in plain:
        kept = referred(request)
        hidden = tuple((name, path) for name, path in hidden if name not in kept)
    if not hidden:
        return plain
    try:
        return json_splice.splice(plain, without(request, {path for _, path in hidden}))
    except ProtocolError:
        return plain  # what is called all the same is judged in the answer


def _learned(found: tuple[Any, ...], view: View) -> Lessons:
    try:
        key = sha256(orjson.dumps([[list(path), tools] for path, tools in found])).digest()
    except orjson.JSONEncodeError:  # lone surrogates, integers past 64 bits
        return view.teacher.learn(offers(found))
    lessons = view.lessons.get(key)
    if lessons is None:
        lessons = view.teacher.learn(offers(found))
        if len(view.lessons) >= MAX_LISTS:
            view.lessons.clear()
        view.lessons[key] = lessons
    return lessons
