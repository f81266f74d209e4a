"""A text as a string of letters, one for the class of each of its words: `Load the keys and put them into x` is R.jk.G.i.

The classes are those of core.inspect.lexicon; what several of them mean together is core.inspect.orders' business.
"""

from __future__ import annotations

import re

from agentsh_net.core.inspect.credentials import SECRET_PATH, SETTINGS_PATH
from agentsh_net.core.inspect.lexicon import ELISION, EXPRESSIONS, JOINED, JOINED_WORD, WIDE, WORDS
from agentsh_net.core.inspect.plain import readable

# What is not a word of the lexicon.
END, COLON, OTHER = "|", ":", "."
SECRET_FILE, SECRET, FILE, TOOL, QUOTED, LINK, ADDRESS, COMMAND = "s", "S", "F", "t", "q", "D", "@", "$"

# An ordinary word first, since nearly all are; then nothing of what begins no token.
PUNCTUATION = ".!?;\u3002\uff01\uff1f\uff1b"
TOKEN = re.compile(
    r"""[a-z]+(?![\w@/'-]|\.\w|://)
    | (?=[^\s,()"<>=&\[\]{}])(?:https?://[^\s"'`<>)\]]{1,400} | [\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{2,40}
    | \b0x[0-9a-f]{20,64}\b | \+\d{8,15}\b | \b\d{1,3}(?:\.\d{1,3}){3}\b
    | `[^`\n]{1,60}`
    | (?:~|\.{1,2})?/[\w.*/@-]{2,200} | (?<![\w.)\]])\.[a-z][\w.-]{1,60}
    | [\w-]{1,60}\.(?:env|pem|key|ya?ml|json|toml|ini|conf|cfg|db|txt|log|md|sqlite|csv)\b
    | [^\W_]+(?:['_-][^\W_]+)*
    | [.!?;](?=[\s"')\]]|$) | [\u3002\uff01\uff1f\uff1b|:])
    | \n\s*(?:\n|[-*\#>\u2022]|\d{1,3}[.)]|(?=[a-z]\w{0,40}(?:\ \([^()\n]{0,40}\))?:))""",
    re.VERBOSE,
)
SECRET_IDENTIFIER = re.compile(
    r"(?:api|private|secret|access|ssh|auth)[_-]?keys?|passw|secret|credential|(?:access|auth|api|session|bearer|integration|refresh|id|git\w{2,3}|npm|slack|bot|vault)_tokens?"
)
KEY_ENDINGS = (".env", ".pem", ".p12", ".pfx", ".key", ".jks", ".kdbx", ".keystore")
KEY_FILE = re.compile(r"(?:^|_)id_?(?:rsa|ed25519|ecdsa)")
IBAN = re.compile(r"[a-z]{2}\d{2}[a-z0-9]{11,30}\Z")
# Commands that fetch what they run, or leave nothing: written as one word.
RUINOUS = re.compile(
    r"""`?[*\d/,\ -]{0,24}\b(?:(?:curl|wget)\b[^\n|]{0,200}\|\s*(?:sudo\s+)?(?:(?:ba|z|da)?sh|python3?|node|perl|ruby)\b | (?:ba|z|da)?sh\s+-c\s+["']?\$\((?:curl|wget)\b[^\n)]{0,200}
    | (?:ba|z|da)?sh\s+-i\s*>&?\s*/dev/(?:tcp|udp)/[\w./-]{3,80}
    | rm\s+-[rf]{1,2}\s+[~/$*][^\s`]{0,80} | drop\s+(?:the\s+)?(?:table|database|schema)\s+\w{1,60})(?:[^`\n]{0,60}`)?""",
    re.VERBOSE,
)
RUINOUS_ANCHORS = ("curl ", "wget ", "rm -", "drop ", "sh -i")
ONE_COMMAND = " `curl x|sh` "


def words(raw: str) -> str:
    """Return a text in lower case, with each expression of several words as the one word that it stands for."""
    # Lower case first: capitals of other scripts look like Latin ones where their small letters do not.
    text = readable(raw.lower()).lower()
    for expression, word in EXPRESSIONS:
        if expression in text:
            text = text.replace(expression, word)
    if "'" in text:
        text = ELISION.sub("", text)
    if any(anchor in text for anchor in RUINOUS_ANCHORS):
        text = RUINOUS.sub(ONE_COMMAND, text)
    if not text.isascii() and WIDE.search(text):
        text = JOINED_WORD.sub(lambda match: f" {match[0]} ", text)
    return text


def letters(text: str) -> str:
    """Return the letters of what `words` gave."""
    known, joined = WORDS.get, JOINED.get
    return "".join(
        [
            known(token)
            or (OTHER if token.isascii() and token.isalpha() else joined(token) or _letter(token))
            for token in TOKEN.findall(text)
        ]
    )


def place(text: str, start: int, end: int) -> tuple[int, int]:
    """Return where in what `words` gave the letters from `start` to `end` stand."""
    tokens = list(TOKEN.finditer(text))
    return tokens[start].start(), tokens[max(start, end - 1)].end()


def _letter(token: str) -> str:
    first = token[0]
    if first in "\n|" or (first in PUNCTUATION and len(token) == 1):
        return END
    if first == ":":
        return COLON
    if first == "`":
        return _quoted(token[1:-1].strip())
    if "://" in token:
        return ADDRESS if token.partition("://")[2][:1].isdigit() else LINK
    if first == "+" or token.startswith("0x") or ("@" in token and "/" not in token):
        return ADDRESS
    if first.isdigit() and token.count(".") == 3:
        return ADDRESS
    if "/" in token or "." in token:
        return SECRET_FILE if _secret_path(token) else FILE
    return _name(token)


def _quoted(inner: str) -> str:
    if inner == "curl x|sh":
        return COMMAND
    if inner in ("env", "printenv") or _secret_path(inner):
        return SECRET_FILE
    if SECRET_IDENTIFIER.search(inner):
        return SECRET
    return TOOL if "_" in inner else QUOTED


def _name(token: str) -> str:
    if KEY_FILE.search(token):
        return SECRET_FILE
    if "_" in token:
        return SECRET if SECRET_IDENTIFIER.search(token) else TOOL
    if "'" in token:  # the user's
        return WORDS.get(token.partition("'")[0], OTHER)
    return ADDRESS if IBAN.match(token) else OTHER


def _secret_path(token: str) -> bool:
    if token.endswith(".pub"):
        return False
    return token.endswith(KEY_ENDINGS) or bool(SECRET_PATH.search(token) or SETTINGS_PATH.search(token))
