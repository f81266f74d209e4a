"""Command groups whose commands are imported when they are used: `agentsh-net version` must not wait for what it does not need."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group of commands given as `module:attribute`."""

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order in which they were given: from what one uses first."""
        return [*self._lazy, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, if there is one of that name."""
        if cmd_name in self._lazy:
            module, _, attribute = self._lazy[cmd_name].partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            return command
        return super().get_command(ctx, cmd_name)
