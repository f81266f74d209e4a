"""The wire formats by the name that `proxy.providers.<name>.dialect` uses."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentsh_net.core.dialects import anthropic, openai_chat
from agentsh_net.core.dialects.base import Dialect

BY_NAME: Final[Mapping[str, Dialect]] = MappingProxyType(
    {"anthropic": anthropic.DIALECT, "openai": openai_chat.DIALECT}
)
