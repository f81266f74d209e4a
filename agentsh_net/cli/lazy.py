"""Command groups whose commands are imported when they are used: `agentsh-net version` must not wait for what it does not need."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click


class LazyGroup(click.Group):
    """A group of commands, some of them given as `module:attribute`; a name that is none of them is told the nearest."""

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the names in the order in which they were given: from what one uses first."""
        return [*self.commands, *self._lazy]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command, if there is one of that name."""
        if cmd_name in self._lazy:
            module, _, attribute = self._lazy[cmd_name].partition(":")
            command: click.Command = getattr(import_module(module), attribute)
            return command
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is meant. click looks for the nearest name only among those that are imported, if at all."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not name.startswith("-") and not ctx.resilient_parsing:
            near = get_close_matches(name, known, n=1)
            meant = f"Did you mean '{near[0]}'?" if near else f"There are: {', '.join(known)}."
            ctx.fail(f"No such command '{name}'. {meant}")
        return super().resolve_command(ctx, args)
