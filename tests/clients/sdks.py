"""What applications get from the SDKs that people run: never a denied call, always the allowed ones, with equal arguments.

`./dev clients sdks` starts it. Streams and bodies (honest ones, and the rows of tests/attacks/llm) go through the dialects; each SDK then
asks a local server for what left and for what came in. The latter says which rows would have fooled it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import transcripts.anthropic as messages
import transcripts.openai_chat as chat
import transcripts.openai_responses as responses

from agentsh_net.core.dialects.anthropic import dialect as anthropic
from agentsh_net.core.dialects.base import Dialect, Judge, Limits
from agentsh_net.core.dialects.openai_chat import dialect as openai_chat
from agentsh_net.core.dialects.openai_responses import dialect as openai_responses

HERE = Path(__file__).parent
DENIED, ALLOWED = "mcp__fs__delete", "mcp__weather__get"
WRITE = "mcp__fs__write"  # by its arguments
ARGUMENTS = {"city": "Bern", "big": 2**53 - 1, "nested": {"a": [1, None, "\u2028"]}}


def attacks(name: str) -> ModuleType:
    """Return a module of tests/attacks/llm."""
    spec = importlib.util.spec_from_file_location(
        f"attacks_{name}", HERE.parent / "attacks" / "llm" / f"{name}.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Case:
    """One answer. `expected`: the calls that must arrive; None where only what must not is known."""

    wire: str
    name: str
    came: bytes
    left: bytes
    whole: bool = False
    expected: list[tuple[str, Any]] | None = None


def judge(denied: set[str]) -> Judge:
    return messages.denying(*denied)


def left(dialect: Dialect, data: bytes, denied: set[str], rng: random.Random) -> bytes:
    stream = dialect.stream(judge(denied), limits=Limits(), fail_closed=False)
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(12)))
    out = b""
    for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True):
        step = stream.feed(data[a:b])
        out += step.out
        if step.end:
            return out
    return out + stream.finish().out


MIXES = [
    [ALLOWED], [DENIED], [DENIED, ALLOWED], [ALLOWED, DENIED], ["text", DENIED, ALLOWED, "text"], [ALLOWED, ALLOWED],
    [DENIED, DENIED], ["text"], ["text", ALLOWED, DENIED, ALLOWED],
]  # fmt: skip


# The npm SDK's helper wants to know who speaks.
ROLE = chat.chunk({"role": "assistant", "content": ""})


def honest(wire: str, mix: list[str]) -> tuple[bytes, bytes]:
    """Return a stream of these blocks, and the same as a body."""
    match wire:
        case "messages":
            stream = (
                messages.begin()
                + b"".join(
                    messages.text(at, "hello") if name == "text" else messages.call(at, name, ARGUMENTS)
                    for at, name in enumerate(mix)
                )
                + messages.end("tool_use" if {DENIED, ALLOWED} & set(mix) else "end_turn")
            )
            content = [
                {"type": "text", "text": "hello"}
                if name == "text"
                else {"type": "tool_use", "id": f"t{at}", "name": name, "input": ARGUMENTS}
                for at, name in enumerate(mix)
            ]
            whole = {
                "id": "m", "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": "tool_use",
                "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1},
            }  # fmt: skip
            return stream, json.dumps(whole).encode()
        case "chat":
            calls = [name for name in mix if name != "text"]
            stream = (
                ROLE
                + chat.text("hello")
                + b"".join(chat.call(at, name, ARGUMENTS) for at, name in enumerate(calls))
            )
            reason = "tool_calls" if calls else "stop"
            made = [
                {
                    "id": f"call_{at}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(ARGUMENTS)},
                }
                for at, name in enumerate(calls)
            ]
            message = {"content": "hello"} | ({"tool_calls": made} if made else {})
            return stream + chat.end(reason) + chat.DONE, chat.completion(message, reason)
        case _:
            items = [
                responses.message_item("hello", at=at)
                if name == "text"
                else responses.function_call(name, ARGUMENTS, at=at)
                for at, name in enumerate(mix)
            ]
            events: list[Any] = responses.begin()
            for at, item in enumerate(items):
                events += responses.text(at, item) if item["type"] == "message" else responses.call(at, item)
            events += responses.end(*items)
            return responses.numbered(events), json.dumps(
                responses.response(*items, status="completed")
            ).encode()


WIRES: dict[str, Dialect] = {
    "messages": anthropic.DIALECT, "chat": openai_chat.DIALECT, "responses": openai_responses.DIALECT,
}  # fmt: skip


def hostile(wire: str, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yield the rows of the bypass catalogue."""
    match wire:
        case "messages":
            module = attacks("test_anthropic")
            sent = (
                messages.begin()
                + messages.call(0, module.BAD, {"a": 1})
                + messages.call(1, module.GOOD, {"a": 2})
                + messages.end()
            )
            for name, spelling in module.SPELLINGS.items():
                yield f"10/20 {name}", spelling(sent)
            for number in range(150):
                yield (
                    f"soup {number}",
                    messages.begin() + b"".join(rng.choice(module.POOL) for _ in range(rng.randrange(1, 9))),
                )
        case "chat":
            for name, stream in attacks("test_openai_chat").ROWS.items():
                yield name, stream if stream.startswith(b"\xef\xbb\xbf") else ROLE + stream
        case _:
            yield from attacks("test_openai_responses").ROWS.items()


def cases() -> list[Case]:
    made = []
    for wire, dialect in WIRES.items():
        rng = random.Random(wire)
        for mix in MIXES:
            stream, whole = honest(wire, mix)
            expected = [(name, ARGUMENTS) for name in mix if name == ALLOWED]
            for turn in range(3):
                out = left(dialect, stream, {DENIED}, rng)
                made.append(Case(wire, f"honest {' '.join(mix)} {turn}", stream, out, expected=expected))
            out = dialect.body(whole, judge({DENIED}), fail_closed=False).out
            made.append(Case(wire, f"whole {' '.join(mix)}", whole, out, whole=True, expected=expected))
        rows = hostile(wire, rng)
        made += [
            Case(wire, name, stream, left(dialect, stream, {DENIED, "delete"}, rng)) for name, stream in rows
        ]
        mingled = attacks("test_mingled_arguments")
        made += [
            Case(wire, f"mingled: {name}", stream, mingled.left(dialect, stream))
            for name, stream in mingled.SENT[wire].items()
        ]
    mingled = attacks("test_mingled_arguments")
    for name, frames in mingled.HONEST.items():
        stream = ROLE + b"".join(frames) + chat.end("tool_calls") + chat.DONE
        out, expected = (
            mingled.left(openai_chat.DIALECT, stream),
            [(n, json.loads(a)) for n, a in mingled.MEANT],
        )
        made.append(Case("chat", f"mingled and honest: {name}", stream, out, expected=expected))
    return made


def is_denied(name: Any, value: Any) -> bool:
    if isinstance(name, list) and len(name) == 1:
        name = name[0]  # JavaScript finds a tool by it all the same
    told = json.dumps(value)
    path = value.get("path") if isinstance(value, dict) else told
    return name in (DENIED, "delete") or "evil" in told or (name == WRITE and "/etc/" in str(path))


class Server(BaseHTTPRequestHandler):
    """Answers /CASE/left/... and /CASE/came/..., cut anywhere."""

    protocol_version = "HTTP/1.1"
    made: list[Case] = []  # noqa: RUF012 - set once, before it serves

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"] or 0))
        _, number, which, *_ = self.path.split("/")
        case = self.made[int(number)]
        data = case.left if which == "left" else case.came
        self.send_response(200)
        self.send_header("content-type", "application/json" if case.whole else "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        rng = random.Random(f"{number}{which}")
        at = 0
        try:
            while at < len(data):
                size = rng.choice((1, 7, 100, 1000, 1 << 16))
                piece = data[at : at + size]
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
                at += size
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True  # a client that has seen enough

    def log_message(self, *arguments: object) -> None: ...


class Listener(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up when they have seen enough."""


def asked(command: list[str], port: int, made: list[Case], scratch: Path) -> list[dict[str, Any]]:
    """Let a process of SDKs ask for every case; return what each client of it was handed."""
    todo = scratch / "cases.json"
    plain = [
        {"id": number, "wire": case.wire, "whole": case.whole, "which": which}
        for number, case in enumerate(made)
        for which in ("left", "came")
    ]
    told = {
        "base": f"http://127.0.0.1:{port}",
        "tools": [ALLOWED, DENIED, WRITE, "ls", "delete"],
        "cases": plain,
    }
    todo.write_text(json.dumps(told))
    environment = {"PATH": os.environ["PATH"], "HOME": str(scratch)}
    with (scratch / "said").open("wb") as said:  # what SDKs complain of is what the rows are about
        done = subprocess.run(
            [*command, str(todo)], stdout=subprocess.PIPE, stderr=said, env=environment, timeout=1500
        )
    if done.returncode:
        raise SystemExit(f"clients: {command}: {(scratch / 'said').read_text()[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]


def judged(found: list[dict[str, Any]], made: list[Case]) -> int:
    """Print a row a client; return how many rows are wrong."""
    clients = sorted({(one["client"], one["version"]) for one in found})
    wrong = 0
    head = (
        "client",
        "version",
        "cases",
        "denied ran, unfiltered",
        "denied ran, filtered",
        "allowed missing or changed",
        "outcome",
    )
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for client, version in clients:
        counts: Counter[str] = Counter()
        first = ""
        for one in (one for one in found if one["client"] == client):
            case = made[one["id"]]
            denied = [call for call in one["calls"] if is_denied(*call)]
            counts[f"denied {one['which']}"] += bool(denied)
            counts[one["which"]] += 1
            if one["which"] == "left":
                lost = case.expected is not None and [list(call) for call in case.expected] != one["calls"]
                counts["lost"] += lost
                if (denied or lost) and not first:
                    first = f"{case.name}: {one['calls']} {one.get('error', '')}"[:300]
        bad = bool(counts["denied left"] or counts["lost"]) or not counts["denied came"]
        wrong += bad
        cells = (
            client, version, f"{counts['left']}", f"{counts['denied came']}", f"{counts['denied left']}", f"{counts['lost']}",
            first or ("nothing fools it: no proof" if bad else "ok"),
        )  # fmt: skip
        print("| " + " | ".join(cells) + " |", flush=True)
    return wrong


def main(modules: str, python: str, scratch: Path) -> int:
    made = cases()
    Server.made = made
    with Listener(("127.0.0.1", 0), Server) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        # Modules are found from a script's own folder upwards.
        script = Path(modules).parent / "npm_sdks.mjs"
        script.write_text((HERE / "npm_sdks.mjs").read_text())
        found = asked(["node", "--no-warnings", str(script)], port, made, scratch)
        # -P: agents.py beside it is not the package of that name.
        found += asked([python, "-P", str(HERE / "python_sdks.py")], port, made, scratch)
        server.shutdown()
    return 1 if judged(found, made) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
