"""Refused calls that a provider keeps in an answer and waits for, though the client never heard of them.

They are noted with the supervisor, so that whichever worker gets the next request knows of them. What it brings is the dialect's business.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from json import dumps
from typing import Any, NamedTuple

import orjson

from agentsh_net.core.dialects.base import Judged
from agentsh_net.core.dialects.interactions import kept_calls as interactions
from agentsh_net.core.dialects.openai_responses.kept_calls import (
    Told,
    answers,
    goes_on_from,
    reference,
    restored,
    stands_for,
)
from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.values import json_splice
from agentsh_proxy.charging import Charges


def nothing() -> None:
    """Have nothing to do once a request was answered."""


class Answered(NamedTuple):
    """A request's text with what its provider waits for, and what to do once that came in."""

    plain: bytes
    settle: Callable[[], None] = nothing


def note(charges: Charges, session_id: str, judged: Judged) -> None:
    """Remember a call that was refused where its provider keeps it."""
    kept = judged.call.kept
    if kept is None or not judged.verdict.blocked:
        return
    for place in kept.places:
        charges.refuse(_key(session_id, place), dumps(kept.result))
    if kept.item is None:
        return
    call = _key(session_id, kept.stand_in)
    if not charges.refuse(call, dumps([kept.item, kept.result])) and kept.item.get("id"):  # too long
        charges.refuse(call, dumps([reference(kept.item["id"]), kept.result]))


def answered(charges: Charges, session_id: str, request: Mapping[str, Any], plain: bytes) -> Answered:
    """Return a request with a result for each refused call that it goes on from; the same text where there is none."""
    given = request.get("input")
    if not charges.refusing:
        return Answered(plain)
    if interaction := interactions.goes_on_from(request):
        waiting = _waiting(charges, _key(session_id, interaction))
        return Answered(_edited(plain, given, interactions.brought(given, waiting)))
    if not isinstance(given, str | list):
        return Answered(plain)
    place = goes_on_from(request)
    key = _key(session_id, place.id)
    waiting = _waiting(charges, key) if place.id else []
    asked = given if isinstance(given, list) else [{"role": "user", "content": given}]
    items: list[Any] = []
    for item in asked:
        ours = stands_for(item)
        items += restored(item, _told(charges, _key(session_id, ours)), waiting) if ours else [item]
    brought = {answers(item) for item in items}
    items = [*(result for result in waiting if answers(result) not in brought), *items]
    left = _edited(plain, asked, items)
    if not (waiting and place.grows):
        return Answered(left)
    return Answered(left, lambda: charges.forget_refused(key, len(waiting)))


def _edited(plain: bytes, given: Any, items: Any) -> bytes:
    """Return a request's text with another input; the same text where it is the same, or cannot be edited."""
    try:
        return plain if items == given else json_splice.splice(plain, {("input",): items})
    except ProtocolError:
        return plain  # the provider tells what it misses


def _waiting(charges: Charges, key: str) -> list[dict[str, Any]]:
    return [orjson.loads(told) for told in charges.refused(key)]


def _told(charges: Charges, key: str) -> Told | None:
    return next((Told(*orjson.loads(told)) for told in charges.refused(key)), None)


def _key(session_id: str, place: str) -> str:
    return f"{session_id}\0{place}"
