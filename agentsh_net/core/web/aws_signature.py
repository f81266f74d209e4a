"""AWS Signature Version 4 (the `Authorization` of a request), for every service but S3, whose paths are spelled otherwise.

The time is an argument. https://docs.aws.amazon.com/IAM/latest/UserGuide/create-signed-request.html
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final
from urllib.parse import quote

ALGORITHM: Final = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Credentials:
    """Who signs, and for which region; `session_token` comes with credentials that expire. A `bearer_token` needs no signature."""

    region: str = ""
    access_key_id: str = ""
    secret_access_key: str = field(default="", repr=False)
    session_token: str = field(default="", repr=False)
    bearer_token: str = field(default="", repr=False)

    @property
    def usable(self) -> bool:
        """Say whether requests can be sent with these."""
        return bool(self.bearer_token or (self.access_key_id and self.secret_access_key and self.region))


@dataclass(frozen=True, slots=True)
class Request:
    """What is signed. `path` and `query` are as they will be sent, `headers` those that the signature covers besides the date's."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes


def signed(request: Request, credentials: Credentials, *, service: str, date: str) -> dict[str, str]:
    """Return the header fields that a request needs besides its own. `date` is the present time, as in 20150830T123600Z."""
    fields = {"X-Amz-Date": date}
    if credentials.session_token:
        fields["X-Amz-Security-Token"] = credentials.session_token
    headers = {name.lower(): " ".join(value.split()) for name, value in {**request.headers, **fields}.items()}
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        (
            request.method,
            quote(request.path or "/", safe="/~"),
            _query(request.query),
            *(f"{name}:{headers[name]}" for name in sorted(headers)),
            "",
            names,
            sha256(request.body).hexdigest(),
        )
    )
    scope = f"{date[:8]}/{credentials.region}/{service}/aws4_request"
    told = "\n".join((ALGORITHM, date, scope, sha256(canonical.encode()).hexdigest()))
    signature = hmac.new(key(credentials, service=service, day=date[:8]), told.encode(), sha256).hexdigest()
    fields["Authorization"] = (
        f"{ALGORITHM} Credential={credentials.access_key_id}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return fields


def key(credentials: Credentials, *, service: str, day: str) -> bytes:
    """Return the key that signs for a day, a region and a service."""
    made = b"AWS4" + credentials.secret_access_key.encode()
    for part in (day, credentials.region, service, "aws4_request"):
        made = hmac.new(made, part.encode(), sha256).digest()
    return made


def _query(query: str) -> str:
    """Return the parameters by name and value; they are sent encoded, and stay so."""
    parts = (pair.partition("=") for pair in query.split("&") if pair)
    return "&".join(f"{name}={value}" for name, _, value in sorted(parts))
