"""Fingerprints of an X.509 certificate, and whether a pin matches one: SHA-256 of the certificate or of its public key.

Whether the certificate is valid and trusted is the TLS library's business; a pin comes on top of that.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from agentsh_net.core.errors import ProtocolError

SEQUENCE = 0x30
VERSION = 0xA0  # [0] EXPLICIT, absent from v1 certificates
BEFORE_PUBLIC_KEY = 5  # serialNumber, signature, issuer, validity, subject (RFC 5280, section 4.1)


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Both digests of one certificate, as `sha256:<hex>`."""

    certificate: str
    public_key: str


def fingerprints(der: bytes) -> Fingerprints:
    """Return the digests of a certificate in DER. Raises ProtocolError if it cannot be read."""
    return Fingerprints(_digest(der), _digest(_public_key_info(der)))


def matches(pin: str, found: Fingerprints) -> bool:
    """Say whether a pin (`sha256:<hex>`, colons between the bytes allowed) names the certificate or its public key."""
    scheme, _, digits = pin.strip().partition(":")
    plain = f"{scheme}:{digits.replace(':', '')}".lower()
    return plain in (found.certificate, found.public_key)


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _public_key_info(der: bytes) -> bytes:
    """Return the SubjectPublicKeyInfo, tag and length included: the bytes that a public key pin hashes (RFC 7469)."""
    _, start, _ = _element(der, 0, SEQUENCE)
    _, at, _ = _element(der, start, SEQUENCE)
    tag, _, end = _element(der, at)
    if tag == VERSION:
        at = end
    for _ in range(BEFORE_PUBLIC_KEY):
        _, _, at = _element(der, at)
    _, _, end = _element(der, at, SEQUENCE)
    return der[at:end]


def _element(der: bytes, at: int, expected: int | None = None) -> tuple[int, int, int]:
    """Return tag, start of the content and end of the DER element at `at` (X.690, section 8.1)."""
    if at + 2 > len(der):
        raise ProtocolError("TLS certificate is cut short")
    tag, length, start = der[at], der[at + 1], at + 2
    if length & 0x80:
        octets = length & 0x7F
        if not 1 <= octets <= 4:
            raise ProtocolError("TLS certificate has a length that DER does not allow")
        length = int.from_bytes(der[start : start + octets], "big")
        start += octets
    if start + length > len(der):
        raise ProtocolError("TLS certificate is cut short")
    if expected is not None and tag != expected:
        raise ProtocolError(f"TLS certificate has tag 0x{tag:02x} where 0x{expected:02x} belongs")
    return tag, start, start + length
