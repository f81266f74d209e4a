"""Tokens that stand for values while a model works with them, and the values they come back as, for the same session only.

The same value has the same token in a session, so that prompts stay alike from turn to turn. Who does not have the key cannot
make a token, and no token says anything of its value.
"""

from __future__ import annotations

import re
from base64 import b32encode
from collections import OrderedDict
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from typing import Final

SIGN: Final = "DLP_"
# Plain letters and digits: no JSON encoder escapes them, and models copy them faithfully. 16 of base 32 are 80 bits.
TOKEN: Final = re.compile(r"DLP_[A-Z0-9]{1,16}_[A-Z2-7]{16}")
_BEGUN: Final = re.compile(r"D(?:L(?:P(?:_(?:[A-Z0-9]{0,16}|[A-Z0-9]{1,16}_[A-Z2-7]{0,15}))?)?)?\Z")
LONGEST: Final = 4 + 16 + 1 + 16

MAX_VALUES: Final = 20_000  # of one session: more distinct finds than a context window holds
MAX_BYTES: Final = 4 << 20  # of a session's values: some thousand private keys
# Of one worker that use tokens at the same time; the one unused for longest is forgotten.
MAX_SESSIONS: Final = 256
_LONGEST_VALUE: Final = 64 << 10

_KINDS: Final = {"api_key": "KEY", "credit_card": "CARD"}


class Vault:
    """One session's tokens."""

    __slots__ = ("_bytes", "_key", "_values")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._values: OrderedDict[str, str] = OrderedDict()  # by token
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def token(self, value: str, kind: str) -> str:
        """Return the token of a value, remembered so that it can come back; what was not asked for in a long time is forgotten."""
        plain = value.encode("utf-8", "surrogatepass")
        code = b32encode(digest(self._key, f"{kind}\0".encode() + plain, sha256)[:10]).decode()
        token = f"{SIGN}{_word(kind)}_{code}"
        if token in self._values:
            self._values.move_to_end(token)
        elif len(plain) <= _LONGEST_VALUE:
            self._values[token] = value
            self._bytes += len(plain)
            while len(self._values) > MAX_VALUES or self._bytes > MAX_BYTES:
                _, gone = self._values.popitem(last=False)
                self._bytes -= len(gone.encode("utf-8", "surrogatepass"))
        return token

    def restored(self, text: str, spelt: Callable[[str], str] = str) -> str:
        """Return a text with the session's values in the place of their tokens, each as `spelt` writes it; others stay."""
        if SIGN not in text:
            return text

        def value(match: re.Match[str]) -> str:
            known = self._values.get(match[0])
            return match[0] if known is None else spelt(known)

        return TOKEN.sub(value, text)

    def knows(self, text: str) -> bool:
        """Say whether a text holds a token of this session."""
        return any(match[0] in self._values for match in TOKEN.finditer(text)) if SIGN in text else False


class Vaults:
    """The vaults of all sessions of a worker."""

    __slots__ = ("_key", "_vaults")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._vaults: OrderedDict[str, Vault] = OrderedDict()

    def of(self, session_id: str) -> Vault:
        """Return a session's vault."""
        vault = self._vaults.get(session_id)
        if vault is None:
            vault = self._vaults[session_id] = Vault(digest(self._key, session_id.encode(), sha256))
            if len(self._vaults) > MAX_SESSIONS:
                self._vaults.popitem(last=False)
        else:
            self._vaults.move_to_end(session_id)
        return vault


def begun(text: str) -> int:
    """Return how many characters at the end of a text may be the beginning of a token."""
    match = _BEGUN.search(text, max(0, len(text) - LONGEST))
    return len(text) - match.start() if match else 0


def _word(kind: str) -> str:
    return _KINDS.get(kind) or re.sub(r"[^A-Z0-9]", "", kind.upper())[:16] or "VALUE"
