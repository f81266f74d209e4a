"""`watch`: calls, connections and layers on one screen, as they happen. Where there is no terminal it is `tail`.

Plain ANSI: the alternate screen, drawn whole a few times a second. What a line says of an event is `tail`'s and `mcp`'s.
"""

from __future__ import annotations

import os
import queue
import shutil
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import click

from agentsh_net.cli.examples import examples
from agentsh_net.cli.main import Daemon
from agentsh_net.cli.output import Row, decision, moment, shown
from agentsh_net.cli.tail import line as tail_line
from agentsh_net.control.errors import ControlError
from agentsh_net.core.naming.folding import visible

_KEPT: Final = 200  # events of each kind: more than any terminal has lines
_REFRESH: Final = 0.25  # seconds between drawings
_ASK: Final = 2.0  # seconds between questions for the layers' state

_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _REST = "\x1b[H", "\x1b[J"
_STYLES: Final = {"block": "31", "would block": "33", "title": "1"}

_CALLS: Final = frozenset({"mcp_tool_call_intercepted", "mcp_tool_called"})
_CONNECTIONS: Final = frozenset({"mcp_network_connection", "llm_direct_connection", "undeclared_connection"})


@dataclass(slots=True)
class Board:
    """What is on the screen."""

    calls: deque[Row] = field(default_factory=lambda: deque(maxlen=_KEPT))
    connections: deque[Row] = field(default_factory=lambda: deque(maxlen=_KEPT))
    others: deque[Row] = field(default_factory=lambda: deque(maxlen=_KEPT))
    counts: Counter[str] = field(default_factory=Counter)
    status: Mapping[str, Any] = field(default_factory=dict)

    def take(self, event: Row) -> None:
        """Take an event."""
        kind = event.get("type")
        where = self.calls if kind in _CALLS else self.connections if kind in _CONNECTIONS else self.others
        where.append(event)
        if kind in _CALLS | _CONNECTIONS:
            self.counts[decision(event)] += 1


@click.command(
    short_help="Watch calls, connections and layers live.",
    epilog=examples("agentsh-net watch", "agentsh-net watch --session s-3f9c01d2ab44"),
)
@click.option("--session", help="Only this session.")
@click.option("--server", help="Only this server (* stands for anything).")
@click.pass_obj
def watch(daemon: Daemon, /, **filters: str | None) -> None:
    """Watch calls, connections and layers live, until Ctrl-C; without a terminal as `tail` does."""
    wanted = {name: value for name, value in filters.items() if value is not None}
    if sys.stdout.isatty():
        _watch(daemon, wanted)
    else:
        for event in daemon.client().stream("tail", **wanted):
            click.echo(tail_line(event))


def _watch(daemon: Daemon, wanted: Mapping[str, str]) -> None:
    """Draw until the daemon ends or somebody interrupts. Raises ControlError."""
    board = Board(status=daemon.client().call("status"))
    news: queue.SimpleQueue[Row | ControlError] = queue.SimpleQueue()
    threading.Thread(target=_follow, args=(daemon, wanted, news), daemon=True).start()
    until_asked = _ASK
    with _screen_of_its_own():
        while True:
            for event in _waiting(news):
                board.take(event)
            until_asked -= _REFRESH
            if until_asked <= 0:
                board.status, until_asked = daemon.client().call("status"), _ASK
            size = shutil.get_terminal_size()
            drawn = (f"{text}\x1b[K" for text in screen(board, size.columns, size.lines))
            click.echo(_HOME + "\r\n".join(drawn) + _REST, nl=False)


class _Signalled(BaseException):
    """A signal that ends programs came; it unwinds the screen first."""


@contextmanager
def _screen_of_its_own() -> Iterator[None]:
    """Draw on the alternate screen; the terminal is as it was afterwards, also where a signal ends the command."""

    def unwind(number: int, _: object) -> None:
        raise _Signalled(number)

    kept = {number: signal.signal(number, unwind) for number in (signal.SIGTERM, signal.SIGHUP)}
    ended = 0
    try:
        click.echo(_ENTER, nl=False)
        yield
    except _Signalled as signalled:
        (ended,) = signalled.args
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
        with suppress(OSError):  # a terminal that hung up takes no more
            click.echo(_LEAVE, nl=False)
    if ended:
        os.kill(os.getpid(), ended)  # whoever sent it sees that it was heeded


def _follow(daemon: Daemon, wanted: Mapping[str, str], news: queue.SimpleQueue[Row | ControlError]) -> None:
    try:
        for event in daemon.client().stream("tail", **wanted):
            news.put(event)
    except ControlError as error:
        news.put(error)


def _waiting(news: queue.SimpleQueue[Row | ControlError]) -> Iterator[Row]:
    """Wait a moment for news, then yield all there is. Raises ControlError where the stream ended."""
    try:
        value = news.get(timeout=_REFRESH)
        while True:
            if isinstance(value, ControlError):
                raise value
            yield value
            value = news.get_nowait()
    except queue.Empty:
        return


def screen(board: Board, width: int, height: int) -> list[str]:
    """Return the lines of the screen, none wider or more than the terminal has."""
    lines = [_cut(_head(board), width, "title")]
    lines += [_cut(f"  {text}", width, style) for text, style in _layers(board.status)]
    room = max(3, height - len(lines) - 3)
    parts = (("CALLS", board.calls, room // 2), ("CONNECTIONS", board.connections, room // 4), ("EVENTS", board.others, room // 4))  # fmt: skip
    for title, events, share in parts:
        lines.append(_cut(title, width, "title"))
        latest = list(events)[-share:] if share else []
        lines += [_cut(f"  {_told(event)}", width, decision(event)) for event in latest]
        lines += [""] * (share - len(latest))
    return lines[:height]


def _head(board: Board) -> str:
    policy = board.status.get("policy") or {}
    counts = ", ".join(f"{count} {word}" for word, count in sorted(board.counts.items())) or "nothing yet"
    return f"agentsh-net {board.status.get('version', '?')}  {policy.get('mode', '?')}, generation {policy.get('generation', '?')}  seen: {counts}"


def _layers(status: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for layer in status.get("layers") or ():
        wanted, there = layer.get("wanted"), layer.get("in_force")
        state = "in force" if there else "NOT IN FORCE" if wanted else "off"
        reason = f": {layer['reason']}" if layer.get("reason") and not there else ""
        yield f"{layer.get('layer')}  {state}{reason}", "block" if wanted and not there else ""
    proxy = status.get("proxy") or {}
    yield f"proxy  {proxy.get('listen') or 'off'}", "block" if proxy.get("trouble") else ""
    yield f"shims  {len(status.get('shims') or ())} connected", ""


def _told(event: Row) -> str:
    from agentsh_net.cli.mcp import detail

    who = event.get("server_id") or "-"
    given = f"  {shown(event.get('input'))}" if event.get("type") in _CALLS and event.get("input") else ""
    return f"{moment(event.get('timestamp'))[11:]}  {decision(event):<11}  {who}  {detail(event)}{given}"


def _cut(text: str, width: int, style: str) -> str:
    """Return text that is safe to draw, in one line of the terminal, with its colour (none under NO_COLOR, see no-color.org)."""
    from rich.cells import cell_len, set_cell_size

    plain, room = visible(text), max(1, width - 1)
    plain = plain if cell_len(plain) <= room else set_cell_size(plain, room)
    code = _STYLES.get(style if style == "title" or not os.environ.get("NO_COLOR") else "")
    return f"\x1b[{code}m{plain}\x1b[0m" if code else plain
