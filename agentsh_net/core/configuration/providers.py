"""The schema of `proxy.providers`: where LLM providers are, what dialect they speak, and what the proxy itself has to say to them.

Which of it goes where on the wire is the proxy's business.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from agentsh_net.core.configuration import settings
from agentsh_net.core.configuration.mcp import MAX_RATE
from agentsh_net.core.configuration.scalars import (
    base_url,
    header_value,
    one_of,
    positive,
    provider_name,
    word,
)
from agentsh_net.core.configuration.schema import At, Refused, record, secret, section, table
from agentsh_net.core.web.aws_signature import Credentials

DIALECTS: Final = ("anthropic", "openai", "gemini", "ollama", "bedrock")

# Tokens: more than any provider sells in a minute, and few enough for the bucket's arithmetic.
LIMITS = section(
    settings.ProviderLimits, {"requests_per_minute": positive(MAX_RATE), "tokens_per_minute": positive(1e10)}
)

REGION: Final = re.compile(r"[a-z]{2,8}(?:-[a-z]+)+-[0-9]{1,2}")
# https://docs.aws.amazon.com/general/latest/gr/bedrock.html
HOST: Final = re.compile(
    r"https://bedrock-runtime(?:-fips)?\.(?P<region>[a-z0-9-]+)\.(?:amazonaws\.com(?:\.cn)?|api\.aws)(?:[:/].*)?"
)


def region(at: At, value: Any) -> str:
    """Read the name of an AWS region."""
    if not REGION.fullmatch(word(at, value)):
        at.refuse(value, "an AWS region such as us-east-1")
    return str(value)


def credential(at: At, value: Any) -> str:
    """Read a secret that goes into a header."""
    if not header_value(at, value).strip():
        at.reject("an empty credential", "the secret, for instance ${AWS_SECRET_ACCESS_KEY}")
    return str(value).strip()


AWS = section(
    Credentials,
    {
        "region": region,
        "access_key_id": secret(credential),
        "secret_access_key": secret(credential),
        "session_token": secret(credential),
        "bearer_token": secret(credential),
    },
)

KEYS = record({"dialect": one_of(*DIALECTS), "base_url": base_url, "limits": LIMITS, "aws": AWS})


def provider(at: At, value: Any) -> settings.Provider:
    """Read a provider; the built-in names have a dialect and a base URL of their own, and so has Bedrock in a known region."""
    known = settings.DEFAULT_PROVIDERS.get(at.name)
    noted = len(at.problems)
    given = KEYS(at, value)
    broken = len(at.problems) > noted
    limits, aws = given.pop("limits", settings.ProviderLimits()), given.pop("aws", Credentials())
    built_in = {"dialect": known.dialect, "base_url": known.base_url} if known else {}
    complete = built_in | given
    if complete.get("dialect") == "bedrock" and aws.region and "base_url" not in value:
        complete["base_url"] = f"https://bedrock-runtime.{aws.region}.amazonaws.com"
    names = ", ".join(settings.DEFAULT_PROVIDERS)
    values = {"dialect": " | ".join(DIALECTS), "base_url": "a URL, or for Bedrock `aws: {region: ...}`"}
    for name, expected in values.items():
        # Of an `aws` section or a dialect with a slip a URL may come once that is mended.
        if name not in value and name not in complete and not (broken and "aws" in value):
            at.key(name).note("nothing", f"{expected}: only {names} have a default")
    if complete.keys() != {"dialect", "base_url"}:
        raise Refused
    return settings.Provider(name=at.name, limits=limits, aws=_checked(at, aws, **complete), **complete)


def _checked(at: At, aws: Credentials, dialect: str, base_url: str) -> Credentials:
    """Complete AWS credentials, and note what is missing or for nothing."""
    here = at.key("aws")
    if dialect != "bedrock":
        if aws != Credentials():
            here.note(
                f"credentials for a provider of the {dialect} dialect", "them with `dialect: bedrock` only"
            )
        return aws
    if not aws.region and (match := HOST.fullmatch(base_url)):
        aws = replace(aws, region=match["region"])
    signs = bool(aws.access_key_id or aws.secret_access_key or aws.session_token)
    if aws.bearer_token and signs:
        here.note("a bearer token and keys", "one of them: a bearer token needs no signature")
    elif signs:
        for name in ("region", "access_key_id", "secret_access_key"):
            if not getattr(aws, name):
                here.key(name).note("nothing", "a value: requests are signed with all three")
    return aws


PROVIDERS = table(provider_name, provider)


def providers(at: At, value: Any) -> dict[str, settings.Provider]:
    """Read the providers; those that are built in are there without being named."""
    return {**settings.DEFAULT_PROVIDERS, **PROVIDERS(at, value)}
