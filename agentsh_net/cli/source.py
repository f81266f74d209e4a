"""Where the rows of a reading command come from: the daemon, or its database read directly; and the options that say so.

Not its business: how rows are printed (`output`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import click

from agentsh_net import places
from agentsh_net.cli.file_name import FILE
from agentsh_net.cli.main import Daemon
from agentsh_net.cli.output import Format
from agentsh_net.control.errors import ControlError

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_LIMIT: Final = 100
MAX_LIMIT: Final = 1_000_000  # as the store: more than this is an export
EVERY: Final = MAX_LIMIT  # of tools, pins and servers, which are there or not, and none of them is the newest

_FILTERS: Final[Mapping[str, tuple[Any, str]]] = {
    "session": (None, "Only this session."),
    "server": (None, "Only this server (* stands for anything)."),
    "tool": (None, "Only this tool (* stands for anything)."),
    "type": (None, "Only events of this type (* stands for anything)."),
    "action": (click.Choice(["allow", "block"]), "Only what was allowed or blocked."),
    "since": (None, "Only since then: 10m, 2h, 7d, or a time like 2025-01-31T12:00:00Z."),
}


@dataclass(slots=True)
class Source:
    """Answers queries: from the daemon, or from `database` where one is given. `older`: a limit left rows out that are older."""

    daemon: Daemon
    database: Path | None = None
    older: bool = False

    @property
    def place(self) -> str:
        """Say of a database where it is, since who names none may mean another; nothing of the daemon's."""
        return f" in {self.database}" if self.database is not None else ""

    def rows(self, kind: str, filters: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Yield the rows of a query, page by page, oldest first."""
        left = filters.get("limit") or DEFAULT_LIMIT
        asked = {**filters, "limit": left}
        while True:
            page = self._page(kind, asked)
            self.older |= page.get("older", False)  # a daemon of an earlier version says nothing of it
            yield from page["rows"]
            left -= len(page["rows"])
            if page["next"] is None or left <= 0:
                return
            asked = {**asked, "after": page["next"], "limit": left}

    def story(self, call: str) -> Mapping[str, Any] | None:
        """Return one call as every layer saw it, None where there is no such call."""
        if self.database is None:
            told: Mapping[str, Any] | None = self.call("story", call=call)
            return told
        from agentsh_net.store import stories

        found = stories.find(self.database, call)
        return found.to_json() if found else None

    def call(self, name: str, **args: Any) -> Any:
        """Return what the daemon answers to a call. Raises ControlError that names --direct-db where there is no daemon."""
        try:
            return self.daemon.client().call(name, **args)
        except ControlError as error:
            if error.kind != "unreachable":
                raise
            remedy = f"{error.remedy}; or read the store without it: --direct-db [--db FILE]"
            raise ControlError(str(error), kind=error.kind, remedy=remedy) from error

    def _page(self, kind: str, filters: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.database is None:
            page: Mapping[str, Any] = self.call("query", kind=kind, filters=filters)
            return page
        from agentsh_net.store import queries

        return queries.page(self.database, kind, filters).to_json()


def formatted(command: Command, what: str = "One JSON array.") -> Command:
    """Give a command --json and --jsonl; it gets `form`. `what` says what --json prints."""

    @click.option("--json", "as_json", is_flag=True, help=what)
    @click.option("--jsonl", "as_jsonl", is_flag=True, help="One JSON object a line.")
    @wraps(command)
    def with_format(*args: Any, as_json: bool, as_jsonl: bool, **kwargs: Any) -> Any:
        if as_json and as_jsonl:
            raise click.UsageError("--json and --jsonl exclude each other")
        form = Format.JSON if as_json else Format.JSONL if as_jsonl else Format.TABLE
        return command(*args, form=form, **kwargs)

    return cast("Command", with_format)


def reading(
    *filters: str, limit: int | None = DEFAULT_LIMIT, json: str = "One JSON array.", **meanings: str
) -> Callable[[Command], Command]:
    """Give a command a format, --direct-db, --limit and the named filters; it gets `source`, `filters` and `form`.

    `meanings` are helps of filters that mean something of their own there; `json` says what --json prints. `limit` is that of who
    names none: EVERY for what is there now, None for what is no list of rows. A bad --since is refused before anybody is asked.
    """

    def decorate(command: Command) -> Command:
        @click.option("--direct-db", is_flag=True, help="Read the store itself, without a daemon.")
        @click.option(
            "--db",
            type=FILE,
            help="The store's file (with --direct-db).",
        )
        @click.pass_obj
        @wraps(command)
        def with_source(daemon: Daemon, /, *, direct_db: bool, db: Path | None, **kwargs: Any) -> Any:
            chosen = {name: kwargs.pop(name) for name in filters}
            given = {name: value for name, value in chosen.items() if value is not None}
            _check_since(given.get("since"))
            database = (db or _default_database()) if direct_db or db else None
            if limit is not None:
                given["limit"] = kwargs.pop("limit")
            source = Source(daemon, database)
            told = command(source=source, filters=given, **kwargs)
            if source.older and limit is not None:
                click.echo(f"note: --limit {given['limit']} left older ones out", err=True)
            return told

        made = cast("Command", with_source)
        if limit is not None:
            made = _limited(made, limit)
        for name in reversed(filters):
            kind, text = _FILTERS[name]
            made = click.option(f"--{name}", type=kind, help=meanings.get(name, text))(made)
        return formatted(made, json)

    return decorate


def _limited(command: Command, limit: int) -> Command:
    every = limit == EVERY
    text = "At most this many." if every else "At most this many, the newest."
    bounds, shown = click.IntRange(1, MAX_LIMIT), "all" if every else True
    return click.option("--limit", type=bounds, default=limit, show_default=shown, help=text)(command)


def _check_since(since: str | None) -> None:
    """Refuse a time that is none. Raises ProtocolError."""
    if since is not None:
        from agentsh_net.store.filters import since_ns

        since_ns(since, time.time_ns())


def _default_database() -> Path:
    return Path(places.store_to_read(os.environ, os.geteuid()))
