"""The wire formats by the name that `proxy.providers.<name>.dialect` uses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentsh_net.core.dialects import batches
from agentsh_net.core.dialects.anthropic import dialect as anthropic
from agentsh_net.core.dialects.base import Dialect
from agentsh_net.core.dialects.bedrock import dialect as bedrock
from agentsh_net.core.dialects.gemini import dialect as gemini
from agentsh_net.core.dialects.interactions import dialect as interactions
from agentsh_net.core.dialects.ollama import dialect as ollama
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.dialects.openai_responses import dialect as openai_responses

# A provider of one dialect speaks these wire formats, told apart by path; what none of them reads gets errors in the first's shape.
WIRES: Final[Mapping[str, tuple[Dialect, ...]]] = MappingProxyType(
    {
        "anthropic": (anthropic.DIALECT, batches.MADE, batches.RESULTS),
        "openai": (openai_chat.DIALECT, openai_responses.DIALECT, batches.FILES),
        "gemini": (gemini.DIALECT, gemini.STREAMED, interactions.DIALECT, batches.GEMINI_FILES),
        "ollama": (ollama.DIALECT,),
        "bedrock": (bedrock.DIALECT, bedrock.CONVERSE_STREAM, bedrock.INVOKE, bedrock.INVOKE_STREAM),
    }
)

BY_NAME: Final[Mapping[str, Dialect]] = MappingProxyType({name: wires[0] for name, wires in WIRES.items()})
