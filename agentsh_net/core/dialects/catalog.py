"""The wire formats by the name that `proxy.providers.<name>.dialect` uses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentsh_net.core.dialects import (
    anthropic,
    batches,
    bedrock,
    gemini,
    ollama,
    openai_chat,
    openai_responses,
)
from agentsh_net.core.dialects.base import Dialect

# A provider of one dialect speaks these wire formats, told apart by path; what none of them reads gets errors in the first's shape.
WIRES: Final[Mapping[str, tuple[Dialect, ...]]] = MappingProxyType(
    {
        "anthropic": (anthropic.DIALECT, batches.MADE, batches.RESULTS),
        "openai": (openai_chat.DIALECT, openai_responses.DIALECT, batches.FILES),
        "gemini": (gemini.DIALECT, gemini.STREAMED, batches.GEMINI_FILES),
        "ollama": (ollama.DIALECT,),
        "bedrock": (bedrock.DIALECT, bedrock.CONVERSE_STREAM, bedrock.INVOKE, bedrock.INVOKE_STREAM),
    }
)

BY_NAME: Final[Mapping[str, Dialect]] = MappingProxyType({name: wires[0] for name, wires in WIRES.items()})
