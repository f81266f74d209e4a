"""Commands in arguments that only an intruder writes: reverse shells, downloads that are run, encoded programs.

Ordinary commands, pipes and substitutions are what a shell tool is for: none of them is a finding. It alerts, like all
findings in arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agentsh_net.core.inspect.findings import Category, Finding, Severity, excerpt
from agentsh_net.core.inspect.strings import Text

_SHELL = r"(?:(?:/usr)?/bin/)?(?:sh|bash|zsh|dash|ksh|python3?|perl|ruby|node|php)"
ANCHORS = ("/dev/tcp/", "/dev/udp/", "nc ", "ncat ", "netcat ", "curl ", "wget ", "base64", "encodedcommand", "-enc ", "-e ", "mkfifo", "attach database", "chmod", "$(", "`", "|")  # fmt: skip

REVERSE_SHELL = re.compile(
    rf"/dev/(?:tcp|udp)/[\w.:-]+/\d+|\b(?:nc|ncat|netcat)\b[^\n|;]{{0,60}}\s-\w*[ec]\w*\s+{_SHELL}\b|\bmkfifo\b[^\n]{{0,80}}\b(?:nc|ncat|netcat)\b"
)
DOWNLOADED = re.compile(
    rf"\b(?:curl|wget)\b[^\n|]{{0,200}}\|\s*(?:sudo\s+)?{_SHELL}\b|\bbase64\s+(?:-d|-D|--decode)\b[^\n|]{{0,40}}\|\s*(?:sudo\s+)?{_SHELL}\b"
    rf"|(?:[|;&`]|\$\()\s*(?:curl|wget)\s[^\n]{{0,20}}https?://|\bchmod\s+(?:\+x|[0-7]{{3,4}})\s+(/(?:var/)?tmp/\S+)[^\n]{{0,40}}\1"
)
ENCODED = re.compile(
    r"\bpowershell(?:\.exe)?\b[^\n]{0,80}\s-e(?:nc|ncodedcommand)?\s+[a-z0-9+/=]{16}", re.IGNORECASE
)
PLANTED = re.compile(r"\battach\s+database\b[^\n]{0,120}<\?php|<\?php[^\n]{0,40}\b(?:system|exec|eval)\s*\(")

KINDS = (
    ("reverse-shell", Severity.HIGH, REVERSE_SHELL),
    ("downloads-and-runs", Severity.HIGH, DOWNLOADED),
    ("encoded-command", Severity.HIGH, ENCODED),
    ("plants-a-shell", Severity.HIGH, PLANTED),
)


def commands(texts: Iterable[Text]) -> Iterator[Finding]:
    """Find intruders' commands in the arguments of a call."""
    texts = tuple(texts)
    whole = "\n".join(text.raw for text in texts).lower()
    anchors = [anchor for anchor in ANCHORS if anchor in whole]
    for text in texts if anchors else ():
        raw = text.raw.lower()
        if any(anchor in raw for anchor in anchors):
            for name, severity, pattern in KINDS:
                match = pattern.search(raw)
                if match:
                    yield Finding(name, Category.EXECUTION, severity, text.path, excerpt(raw, *match.span()))
