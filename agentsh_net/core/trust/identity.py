"""What a server is besides its tools, and whether that is still what was trusted: certificate, binary, instructions.

What it lists besides tools is kept in the same way, by `definitions`.

Pure: what was seen comes from discovery and shims, and the pin store writes what is decided here. What a state does to
calls is core.verdicts.steps' business.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from agentsh_net.core.model import PinState, Server
from agentsh_net.core.trust import certificate
from agentsh_net.core.trust.certificate import Fingerprints
from agentsh_net.core.values import canonical

Value = Mapping[str, Any]

# Characters of instructions that are kept for a diff: three times the longest of popular servers; the digest covers the rest.
MAX_TEXT = 32 << 10
MAX_SCRIPTS = 8  # files among the words of a command: an interpreter's script, and what it preloads


class Aspect(StrEnum):
    """What is pinned about a server itself."""

    TLS = "tls"
    BINARY = "binary"
    INSTRUCTIONS = "instructions"
    PROMPTS = "prompts"
    RESOURCES = "resources"
    TEMPLATES = "resource_templates"


# What is told of, and has no say in verdicts.
LISTED: Final = frozenset((Aspect.PROMPTS, Aspect.RESOURCES, Aspect.TEMPLATES))


@dataclass(frozen=True, slots=True)
class Identity:
    """One aspect of one server: what is trusted (empty: nothing yet) and what was seen last.

    `declared`: the policy file says what it has to be, and nobody's trust changes that.
    """

    server_id: str
    aspect: Aspect
    state: PinState
    pinned: Value = field(default_factory=dict, repr=False)
    offered: Value = field(default_factory=dict, repr=False)
    trusted_at: str = ""
    declared: bool = False


def tls(found_certificate: str, public_key: str) -> Value:
    """Return what is pinned of a TLS certificate: both digests, as a renewal may keep the key."""
    return {"certificate": found_certificate, "public_key": public_key}


def instructions(text: str) -> Value:
    """Return what is pinned of a server's instructions."""
    value: dict[str, Any] = {"text": text[:MAX_TEXT]}
    if len(text) > MAX_TEXT:
        value |= {"length": len(text), "sha256": canonical.hash_of(text)}
    return value


def binary(executable: str, digest: str, scripts: Sequence[tuple[str, str]]) -> Value:
    """Return what is pinned of a started program: its file, and the files among its arguments, as (path, digest)."""
    listed = [{"path": path, "sha256": sha256} for path, sha256 in scripts[:MAX_SCRIPTS]]
    return {"executable": executable, "sha256": digest, "scripts": listed}


def wanted(server: Server, aspect: Aspect) -> bool:
    """Say whether verdicts rest on this about a server."""
    match aspect:
        case Aspect.TLS:
            return server.pin_tls or bool(server.tls_fingerprint)
        case Aspect.BINARY:
            return server.pin_binary
        case Aspect.INSTRUCTIONS:
            return True
        case _:
            return False


def same(aspect: Aspect, pinned: Value, offered: Value) -> bool:
    """Say whether what is offered is what was trusted. Where a file lies, and a certificate renewed for the same key, is no change."""
    match aspect:
        case Aspect.TLS if "declared" in pinned:
            found = Fingerprints(str(offered.get("certificate")), str(offered.get("public_key")))
            return certificate.matches(str(pinned["declared"]), found)
        case Aspect.TLS:
            return any(pinned.get(key) == offered.get(key) != "" for key in ("certificate", "public_key"))
        case Aspect.BINARY:
            return _contents(pinned) == _contents(offered)
        case _:
            return mark(aspect, pinned) == mark(aspect, offered)


def mark(aspect: Aspect, value: Value) -> str:
    """Return a digest that stands for a value in tables; of a certificate and a lone binary, the one that other programs print too."""
    if not value or "mark" in value:
        return str(value.get("mark", ""))
    match aspect:
        case Aspect.TLS:
            return str(value.get("declared") or value.get("certificate") or "")
        case Aspect.BINARY if not value.get("scripts"):
            return str(value.get("sha256", ""))
        case Aspect.BINARY:
            return canonical.hash_of(_contents(value))
        case _:
            return canonical.hash_of(value)


def marked(mark: str) -> Value:
    """Return what stands for a pinned value where only its mark is known: in a worker."""
    return {"mark": mark} if mark else {}


def seen(known: Identity | None, server: Server, aspect: Aspect, offered: Value, *, trust_first: bool, now: str) -> Identity:  # fmt: skip
    """Return how a server stands now that this was seen of it. What was never trusted is, if `trust_first` says so.

    That it says nothing to the model wants nobody's trust; that it begins to is a change.
    """
    says_nothing = aspect is Aspect.INSTRUCTIONS and not offered.get("text")
    if aspect is Aspect.TLS and server.tls_fingerprint:
        pinned: Value = {"declared": server.tls_fingerprint}
        state = PinState.TRUSTED if same(aspect, pinned, offered) else PinState.CHANGED
        return Identity(server.id, aspect, state, pinned, offered, declared=True)
    if known is None or known.declared:
        new = Identity(server.id, aspect, PinState.NEW, {}, offered)
        return trusted(new, now) if trust_first or says_nothing else new
    if not known.pinned:  # somebody has to look at it
        anew = replace(known, offered=offered, state=PinState.NEW)
        return trusted(anew, now) if says_nothing else anew
    state = PinState.TRUSTED if same(aspect, known.pinned, offered) else PinState.CHANGED
    return replace(known, offered=offered, state=state)


def silent(identity: Identity) -> bool:
    """Say whether it is that a server says nothing to the model, and never did: nobody has to trust or forget that."""
    texts = (identity.pinned.get("text"), identity.offered.get("text"))
    return identity.aspect is Aspect.INSTRUCTIONS and not any(texts)


def trusted(identity: Identity, now: str) -> Identity:
    """Return the identity with what is offered trusted."""
    return replace(identity, pinned=identity.offered, state=PinState.TRUSTED, trusted_at=now)


def forgotten(identity: Identity) -> Identity:
    """Return the identity as never trusted (`mcp pins reset`)."""
    return replace(identity, pinned={}, state=PinState.NEW, trusted_at="")


def _contents(value: Value) -> list[Any]:
    scripts = value.get("scripts") or ()
    return [value.get("sha256"), *(script.get("sha256") for script in scripts)]
