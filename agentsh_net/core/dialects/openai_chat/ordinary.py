"""The frames of an ordinary chat completion in which a model says something, known by heart: all but their text is foreseen.

As OpenAI writes them, and those who speak like it (DeepSeek, Mistral, Groq, vLLM). What is not exactly so is read as it always was.
"""

from __future__ import annotations

import re
from typing import Final

from agentsh_net.core.dialects.prose import Shape

_STRING: Final = rb'"[ !#-\[\]-~]*"'
_NAMED: Final = rb"(?:%b|null)" % _STRING

PROSE: Final = Shape(
    re.compile(
        rb'data: \{"id":%b,"object":"chat\.completion\.chunk","created":(?:0|[1-9][0-9]{0,14}),"model":%b'
        rb'(?:,"service_tier":%b)?(?:,"system_fingerprint":%b)?'
        rb',"choices":\[\{"index":(?:0|[1-9][0-9]{0,3}),"delta":\{"content":"'
        % (_STRING, _STRING, _NAMED, _NAMED)
    ),
    re.compile(
        rb'"\}(?:,"logprobs":null)?,"finish_reason":null\}\]'
        rb'(?:,"usage":null)?(?:,"obfuscation":"[0-9A-Za-z]*")?\}\n\n'
    ),
)
