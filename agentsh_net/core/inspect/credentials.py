"""Reaching for secrets, or holding one: paths where credentials live, the shapes of keys, parameters that ask for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from agentsh_net.core.flows.tool_words import words
from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.strings import Path, Text
from agentsh_net.core.naming.folding import visible
from agentsh_net.core.values.differences import dotted

# Private keys and password files: nothing but a secret is there.
SECRET_PATH = re.compile(
    r"""\.ssh/(?:id_|config|identity|authorized_keys|\*) | \bid_(?:rsa|ed25519|ecdsa|dsa)\b | ~/\.ssh\b | /\.ssh\b(?!-)
    | \.aws/credentials | /etc/(?:passwd|shadow|sudoers|gshadow) | /proc/(?:self|\d+|\*)/environ
    | \.git-credentials | \.netrc\b | \.pgpass\b | \.pypirc\b | \.gnupg\b | \.vault-token | \.htpasswd
    | application_default_credentials | \.azure/(?:accesstokens|msal) | \.gem/credentials | \.config/gh/hosts | \.terraformrc | \bterraform\.rc\b
    | /run/secrets/ | \blogin\.keychain | library/keychains | \bcookies\.sqlite | \blogin\ data\b | \bwallet\.dat\b | \bkey[34]\.db\b
    | \.(?:bash|zsh|python|psql|mysql)_history\b | \bclaude_desktop_config\.json | \.cursor/mcp\.json | 169\.254\.169\.254 | metadata\.google\.internal
    | \bservice-?account\w*\.json | \bntds\.dit\b | \bsystem32[\\/]config[\\/]sam\b | \.gcloud/ | \.config/gcloud""",
    re.VERBOSE,
)
# Settings that often hold one, and that honest tools speak of, too.
SETTINGS_PATH = re.compile(
    r"""(?:^|[\s/'(=])\.env(?:\.\w{1,20})?(?![\w.(-]) | \.kube/config | \.docker/config\.json | \.npmrc\b | \bmcp\.json\b | (?:^|/)credentials\.(?:json|db|ya?ml|xml|txt)\b
    | (?:^|/)secrets?\.(?:ya?ml|json|toml|env)\b | \.(?:bash|zsh)rc\b | (?:^|[\s/])\.profile\b | \.my\.cnf\b | \.boto\b | \bdocker\.sock\b | \btfstate\b
    | (?:^|/)config/database\.yml\b | \bappsettings\.json\b""",
    re.VERBOSE,
)
SECRET_ANCHORS = (
    ".ssh", "id_", ".aws", "/etc/", "/proc/", "credential", ".netrc", ".pgpass", ".pypirc", ".gnupg", "vault-token", "htpasswd",
    ".azure/", "gh/hosts", "terraform", "secrets/", "keychain", "cookies.sqlite", "login data", "wallet.dat", ".db", "_history",
    "claude_desktop", "mcp.json", "169.254", "google.internal", "account", "ntds.dit", "system32", "gcloud",
)  # fmt: skip
SETTINGS_ANCHORS = (
    ".env", ".kube", ".docker", ".npmrc", "mcp.json", "credentials.", "secret", "shrc", ".profile", ".cnf", ".boto", "docker.sock", "tfstate",
    "database.yml", "appsettings",
)  # fmt: skip
# An order to reach for what stands shortly behind it, or a request for what is in it.
REACH = re.compile(
    r"\b(?:read|open|cat|access|load|fetch|retrieve|get|copy|send|upload|include|attach|list|print|dump|show|check|grab|extract|collect|take|view|use|output|post|echo|type|contents?\ of|content\ of)\b[^.!?]{0,60}$"
)
# What is refused is told of, and not reached for.
REFUSED = re.compile(
    r"[^.!?]{0,40}?\b(?:is|are|will\ be|gets?)\ (?:always\ )?(?:rejected|refused|blocked|denied|forbidden|excluded|disallowed|not\ allowed)\b"
)
TRAVERSAL = re.compile(r"(?:\.\.[/\\]){3}")
ENCODED = re.compile(r"%(?:25)?(?:2e|2f|5c|c0%(?:25)?ae)", re.IGNORECASE)

# In identifiers there are no dots and slashes: `content_of_ssh_id_rsa`.
SECRET_WORDS = re.compile(
    r"\b(?:contents?|value|text|file|read|reading|from|of|ssh|copy|load|private)\b(?: \w+){0,4} id (?:rsa|ed 25519|ecdsa|dsa)\b|\bssh private keys?\b(?! (?:name|id|path|file|fingerprint)\b)|\bssh keys? (?:contents?|values?|text|data)\b|\bssh id\b|\betc (?:passwd|shadow)\b|\baws (?:credentials|secret)\b"
    r"|\bprivate keys? (?:content|value|file content)s?\b|\b(?:content|contents|value|text) (?:of|from) (?:\w+ )?(?:env|dotenv|dot env|credentials?|secrets?|keys?|passwords?)\b|\bproc self environ\b"
)

KEY_SHAPE = re.compile(
    r"""-----BEGIN\ (?:[A-Z]{2,10}\ ){0,2}PRIVATE\ KEY | \b(?:AKIA|ASIA)[0-9A-Z]{16}\b | \bgh[pousr]_[A-Za-z0-9]{36}
    | \bgithub_pat_[A-Za-z0-9_]{40} | \bglpat-[A-Za-z0-9_-]{20} | \bsk-(?:ant-|proj-|or-|svcacct-)?[A-Za-z0-9_-]{24} | \bxox[abprs]-[0-9A-Za-z-]{20}
    | \bAIza[0-9A-Za-z_-]{35} | \bnpm_[A-Za-z0-9]{36} | \bpypi-[A-Za-z0-9_-]{50} | \b[rs]k_live_[0-9a-zA-Z]{20} | \bSG\.[\w-]{20,24}\.[\w-]{40}
    | \bhf_[A-Za-z0-9]{34} | \beyJ[A-Za-z0-9_-]{16,2000}\.eyJ[A-Za-z0-9_-]{16,2000}\.[A-Za-z0-9_-]{16} | \bdop_v1_[a-f0-9]{64} | \bsbp_[a-f0-9]{40}""",
    re.VERBOSE,
)
KEY_ANCHORS = (
    "PRIVATE KEY", "AKIA", "ASIA", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "sk-", "xox", "AIza", "npm_", "pypi-", "k_live_",
    "SG.", "hf_", "eyJ", "dop_v1_", "sbp_",
)  # fmt: skip
PLACEHOLDER = re.compile(r"(?i)example|(.)\1{7}|your|1234567|xxxx|abcdef")

# Names of parameters that ask for a secret, or for what the model knows.
SECRET_PARAMETER = re.compile(
    r"\b(?:password|passwd|passphrase|secret(?: key)?|api ?key|private key|ssh key|access token|auth token|bearer token|session cookies?|credentials?|master key|recovery phrase|seed phrase|mnemonic|otp|pin code|cvv)\b(?! (?:type|name|id|ids|policy|length|count|field|expiry|ref|version|scope|hint|manager|rotation|store)\b)"
)
KNOWLEDGE_PARAMETER = re.compile(
    r"\b(?:system prompt|conversation(?: history)?(?! (?:\w+ )?(?:ids?|index|key|name|type|url)\b)|chat (?:history|log)|message history|previous messages|env(?:ironment)? (?:vars?|variables)|initial instructions|full context|user context|sidenote|side note)\b"
)
# Of these even a required one has no honest use: what was said before is not the tool's to know.
TALK_PARAMETER = re.compile(
    r"\b(?:(?:conversation|chat|message|dialogue) (?:history|log|transcript|context)|(?:previous|prior|all|user) messages|full (?:context|conversation)|sidenote|side note)\b"
)
MAX_SCHEMA_NODES = 2_000  # objects of a schema whose properties are looked at; real ones have a few dozen


def paths_in_definition(texts: Sequence[Text]) -> Iterator[Finding]:
    """Find paths of credentials in what a server offers: critical where the text reaches for them."""
    for text, match, secret in _paths(texts):
        ordered = not text.key and REACH.search(text.plain[max(0, match.start() - 80) : match.start()])
        if not ordered and REFUSED.match(text.plain, match.end()):
            continue
        if secret:
            severity = Severity.CRITICAL if ordered else Severity.MEDIUM
        elif ordered:
            severity = Severity.MEDIUM
        else:
            continue
        name = "credential-path-wanted" if ordered else "credential-path"
        yield Finding(name, Category.CREDENTIALS, severity, text.path, excerpt(text.plain, *match.span()))
    yield from _identifiers(texts)


def paths_in_arguments(texts: Sequence[Text]) -> Iterator[Finding]:
    """Find paths of credentials in the arguments of a call, decoded as a careless server would decode them."""
    for text, match, secret in _paths([*texts, *_decoded(texts)]):
        severity = Severity.HIGH if secret else Severity.MEDIUM
        shown = excerpt(text.plain, *match.span())
        yield Finding("credential-path", Category.CREDENTIALS, severity, text.path, shown)
    for text in texts:
        reading = next(iter(_decoded((text,))), text).plain if "%" in text.raw else text.plain
        climbed = TRAVERSAL.search(reading)
        if climbed or (ENCODED.search(text.raw) and ".." in reading):
            at = climbed.span() if climbed else (0, 0)
            shown = excerpt(reading, *at)
            yield Finding("path-traversal", Category.CREDENTIALS, Severity.MEDIUM, text.path, shown)


def key_shapes(texts: Iterable[Text], severity: Severity) -> Iterator[Finding]:
    """Find strings that have the shape of a key; placeholders of documentation are none. Excerpts show the first characters only."""
    texts = tuple(texts)
    whole = "\n".join(text.raw for text in texts)
    anchors = [anchor for anchor in KEY_ANCHORS if anchor in whole]
    for text in texts if anchors else ():
        if not any(anchor in text.raw for anchor in anchors):
            continue
        for match in KEY_SHAPE.finditer(text.raw):
            if not PLACEHOLDER.search(match[0]):
                shown = f"{visible(match[0][:12])}… ({len(text.raw)} characters in all)"
                yield Finding("key-shape", Category.CREDENTIALS, severity, text.path, shown)
                break


def secret_parameters(definition: Mapping[str, Any]) -> Iterator[Finding]:
    """Find parameters that ask for a secret or for what the model knows. A tool that needs a secret itself says `required`."""
    for steps, name, needed in _properties(definition.get("inputSchema"), ("inputSchema",)):
        spelled = " ".join(words(name))
        if (TALK_PARAMETER if needed else KNOWLEDGE_PARAMETER).search(spelled):
            kind, severity = "asks-for-context", Severity.MEDIUM
        elif not needed and SECRET_PARAMETER.search(spelled):
            kind, severity = "asks-for-secret", Severity.LOW
        else:
            continue
        shown = f"{'required' if needed else 'optional'} parameter {visible(name)[:200]}"
        yield Finding(kind, Category.CREDENTIALS, severity, dotted(steps), shown)


def _paths(texts: Iterable[Text]) -> Iterator[tuple[Text, re.Match[str], bool]]:
    texts = tuple(texts)
    whole = "\n".join(text.plain for text in texts)
    secrets = [anchor for anchor in SECRET_ANCHORS if anchor in whole]
    settings = [anchor for anchor in SETTINGS_ANCHORS if anchor in whole]
    for text in texts if secrets or settings else ():
        plain = text.plain
        if any(anchor in plain for anchor in secrets):
            match = SECRET_PATH.search(plain)
            if match:
                yield text, match, True
                continue
        if any(anchor in plain for anchor in settings):
            match = SETTINGS_PATH.search(plain)
            if match:
                yield text, match, False


def _identifiers(texts: Iterable[Text]) -> Iterator[Finding]:
    for text in texts:
        raw = text.raw
        if len(raw) <= 128 and " " not in raw and ("_" in raw or "-" in raw or text.key):
            match = SECRET_WORDS.search(" ".join(words(raw)))
            if match:
                yield Finding("credential-name", Category.CREDENTIALS, Severity.HIGH, text.path, visible(raw))


def _decoded(texts: Iterable[Text]) -> Iterator[Text]:
    """Yield what percent-encoding, once or twice, hides."""
    for text in texts:
        if "%" in text.raw:
            once = unquote(text.raw.replace("%c0%ae", ".").replace("%C0%AE", "."))
            twice = unquote(once)
            if twice != text.raw:
                yield Text(text.steps, twice, twice.lower(), text.key)


def _properties(schema: Any, steps: Path) -> Iterator[tuple[Path, str, bool]]:
    """Yield the properties of a schema and of the schemas in it, and whether each is required."""
    stack: list[tuple[Path, Any]] = [(steps, schema)]
    for _ in range(MAX_SCHEMA_NODES):
        if not stack:
            return
        here, node = stack.pop()
        if isinstance(node, Mapping):
            properties, required = node.get("properties"), node.get("required")
            if isinstance(properties, Mapping):
                needed = set(map(str, required)) if isinstance(required, list | tuple) else set()
                yield from (((*here, "properties", name), name, name in needed) for name in properties)
            stack += [
                ((*here, key), value) for key, value in node.items() if isinstance(value, Mapping | list)
            ]
        elif isinstance(node, list):
            stack += [((*here, index), item) for index, item in enumerate(node) if isinstance(item, Mapping)]
