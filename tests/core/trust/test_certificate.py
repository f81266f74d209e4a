"""A pin names the certificate or its public key by SHA-256, as OpenSSL prints them; what is no certificate is an error."""

from __future__ import annotations

import base64
import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.core.errors import ProtocolError
from agentsh_net.core.trust import certificate

CERTIFICATE = base64.b64decode("""
MIIBnDCCAUGgAwIBAgIUAXj86wOpaRhp3rTmNuCBAxTJENowCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjAwMTgzN1oYDzIxMjYxMDI5
MDAxODM3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAT5dpOWf3OV3iFUKEOfjNyU/BQgOHu2PL1pNwK6mEgFvcNpePqaBfkL
e/AvbiM7FSzPwl7q4BoM6v4yGRX8RJaTo28wbTAdBgNVHQ4EFgQUZVzi9uNs6/GP
FQrSSxKIce8VGFswHwYDVR0jBBgwFoAUZVzi9uNs6/GPFQrSSxKIce8VGFswDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSQAwRgIhAPjlplTk6otoQVCKhZCEtIoQhGaOEO7JX91ut/K1FThVAiEA
5BTgC4K/r/w4QLWER/pX1WWGuG+JLLJ2aW6gJCH3lnk=""")
# openssl x509 -fingerprint -sha256; openssl x509 -pubkey | openssl pkey -pubin -outform DER | sha256sum
FINGERPRINT = "3a9cd4f023ddce5158031754be5c78c9e4e1ec9a01bf03e1f5e7a2a13317de3f"
PUBLIC_KEY = "138ac3dd91f4ff8b33cd18a45543e5fb620ddc6cc9b8004dad43f32127b57cea"


def test_both_digests_are_those_that_openssl_prints() -> None:
    found = certificate.fingerprints(CERTIFICATE)
    assert found.certificate == f"sha256:{FINGERPRINT}"
    assert found.public_key == f"sha256:{PUBLIC_KEY}"


def test_a_pin_matches_either_in_any_usual_spelling() -> None:
    found = certificate.fingerprints(CERTIFICATE)
    coloned = ":".join(FINGERPRINT[i : i + 2] for i in range(0, 64, 2)).upper()
    for pin in (
        f"sha256:{FINGERPRINT}",
        f"SHA256:{FINGERPRINT.upper()}",
        f"sha256:{coloned}",
        f"sha256:{PUBLIC_KEY}",
    ):
        assert certificate.matches(pin, found)


@pytest.mark.parametrize(
    "pin",
    ["", "sha256:", FINGERPRINT, f"sha1:{FINGERPRINT}", f"sha256:{FINGERPRINT[:-2]}", "sha256:" + "0" * 64],
)
def test_any_other_pin_does_not_match(pin: str) -> None:
    assert not certificate.matches(pin, certificate.fingerprints(CERTIFICATE))


def test_a_certificate_that_is_cut_anywhere_before_the_key_ends_is_an_error() -> None:
    for length in range(len(CERTIFICATE)):
        with pytest.raises(ProtocolError):
            certificate.fingerprints(CERTIFICATE[:length])


def element(tag: int, content: bytes, octets: int = 0) -> bytes:
    """DER, the length in so many octets (0: the short form)."""
    length = (
        bytes([len(content)])
        if octets == 0
        else bytes([0x80 | octets]) + len(content).to_bytes(octets, "big")
    )
    return bytes([tag]) + length + content


def certificate_with(issuer: bytes, *, version: bool = True, key_tag: int = 0x30) -> tuple[bytes, bytes]:
    """A certificate's skeleton (RFC 5280, section 4.1), and its SubjectPublicKeyInfo."""
    key = element(key_tag, b"key")
    before = element(2, b"\1") + element(0x30, b"") + issuer + element(0x30, b"") + element(0x30, b"")
    body = (element(0xA0, element(2, b"\2")) if version else b"") + before + key
    return element(0x30, element(0x30, body, 2), 2), key


@pytest.mark.parametrize("version", [True, False])
@pytest.mark.parametrize("octets", [0, 1, 2, 4])
def test_the_key_is_found_behind_names_of_any_length_and_in_certificates_of_any_version(
    octets: int, version: bool
) -> None:
    der, key = certificate_with(
        element(0x30, b"x" * {0: 100, 1: 200}.get(octets, 300), octets), version=version
    )
    assert certificate.fingerprints(der).public_key == f"sha256:{hashlib.sha256(key).hexdigest()}"


@pytest.mark.parametrize(
    ("der", "says"),
    [
        (certificate_with(b"\x30\x80\0\0")[0], "a length that DER does not allow"),  # indefinite: BER
        (certificate_with(element(0x30, b"x", 5))[0], "a length that DER does not allow"),
        (certificate_with(element(0x30, b""), key_tag=4)[0], "tag 0x04 where 0x30 belongs"),
        (element(0x31, b""), "tag 0x31 where 0x30 belongs"),
        (element(0x30, b"\x30"), "cut short"),  # whole outside, not within
    ],
)
def test_what_is_no_certificate_in_der_is_told_apart(der: bytes, says: str) -> None:
    with pytest.raises(ProtocolError, match=says):
        certificate.fingerprints(der)


@given(st.binary(max_size=64))
def test_any_bytes_are_a_certificate_or_a_protocol_error(data: bytes) -> None:
    try:
        found = certificate.fingerprints(data)
    except ProtocolError:
        return
    assert found.certificate == f"sha256:{hashlib.sha256(data).hexdigest()}"
