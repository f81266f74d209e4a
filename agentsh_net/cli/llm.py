"""`llm requests`: what was asked of providers and what it cost; with `--show` one of them, as it was sent and answered.

Records are made while `llm_storage.store_bodies` is on. Their bodies are for root, or for who runs the daemon.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.lazy import LazyGroup
from agentsh_net.cli.output import Column, Format, Row, json_text, moment, show, shown
from agentsh_net.cli.source import Source, reading
from agentsh_net.core.naming.folding import visible
from agentsh_net.store.bodies import MAX_SHOWN, Bodies, folder_beside


@click.group(cls=LazyGroup)
def llm() -> None:
    """Look at requests to LLM providers."""


@llm.command(
    epilog=examples(
        "agentsh-net llm requests --since 1d",
        "agentsh-net llm requests --show 01a2028f-11ed-794e-83a4-655c466b72f2",
    )
)
@reading("session", "since")
@click.option("--show", "record", metavar="ID", help="Print this request and its answer.")
def requests(source: Source, filters: Mapping[str, Any], form: Format, record: str | None) -> None:
    """List requests, the oldest first, or show one of them."""
    if record is not None:
        _show(source, record, form)
        return
    columns = (
        Column("ID", lambda row: str(row["id"])),
        Column("STARTED (UTC)", lambda row: moment(row["started"])),
        Column("SESSION", lambda row: str(row["session_id"])),
        Column("PROVIDER", lambda row: str(row["provider"])),
        Column("MODEL", lambda row: shown(row["model"]), fold=True),
        Column("STATUS", lambda row: str(row["status"] or "-")),
        Column("IN", lambda row: shown(row["input_tokens"])),
        Column("OUT", lambda row: shown(row["output_tokens"])),
        Column("BYTES", _bytes),
        Column("OUTCOME", lambda row: shown(row["outcome"]), fold=True),
    )
    show(
        source.rows("requests", filters),
        form,
        columns,
        empty=f"no requests found{source.place}: see llm_storage.store_bodies",
    )


def _bytes(row: Row) -> str:
    cut = " (cut)" if row["truncated"] else ""
    return f"{row['request_bytes']}/{row['answer_bytes']}{cut}"


def _show(source: Source, record: str, form: Format) -> None:
    parts = (
        _read(source.database, record) if source.database is not None else source.call("llm.show", id=record)
    )
    if form is not Format.TABLE:
        click.echo(json_text(parts))
        return
    for name, part in parts.items():
        left = part["size"] - MAX_SHOWN
        click.echo(f"--- {name} ({part['size']} bytes)")
        click.echo("\n".join(visible(line) for line in part["text"].splitlines()))
        if left > 0:
            click.echo(f"--- {left} bytes more are in the file")


def _read(database: Path, record: str) -> dict[str, Any]:
    return Bodies(folder_beside(database)).shown(record, MAX_SHOWN)
