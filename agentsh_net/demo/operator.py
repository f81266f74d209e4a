"""The operator: runs the daemon over a policy file and uses it as people do, by its command line.

Which policies and when is `play`'s business.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from agentsh_net.core.errors import KernelError

# Seconds; everything takes a fraction of that on a quiet machine.
READY: Final = 60.0
COMMAND: Final = 60.0
RUN: Final = 120.0
STOP: Final = 20.0

OURS: Final = (sys.executable, "-m", "agentsh_net")
# What programs here inherit: no proxies, no keys, no other daemon's socket.
INHERITED: Final = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "BCC_KERNEL_SOURCE",
)


class Hired:
    """An agent that waits for its turn."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def play(self) -> list[dict[str, Any]]:
        """Let it begin, and return what it reported until it ended."""
        try:
            said, _ = self._process.communicate(b"go\n", RUN)
        except subprocess.TimeoutExpired as error:
            said = error.stdout or b""
        return [json.loads(line) for line in said.splitlines() if line.startswith(b"{")]

    def dismiss(self) -> None:
        """End it, whatever it does."""
        self._process.kill()
        self._process.communicate()


class Operator:
    """A daemon, its folder and its command line."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "policy.yaml"
        self._folder = folder
        self._daemon: subprocess.Popen[bytes] | None = None
        self._environ = {name: os.environ[name] for name in INHERITED if name in os.environ}
        self._environ["AGENTSH_NET_SOCKET"] = str(folder / "control.sock")

    def write(self, policy: Mapping[str, Any] | str) -> None:
        """Put a policy in force, or where the daemon will find it."""
        import yaml

        text = policy if isinstance(policy, str) else yaml.safe_dump(dict(policy), sort_keys=False)
        scratch = self.file.with_suffix(".new")
        scratch.write_text(text, encoding="utf-8")
        scratch.rename(self.file)

    def start(self) -> None:
        """Start the daemon and wait until it is ready. Raises KernelError with what it said where it does not start."""
        ready = self._folder / "ready"
        with self._log().open("ab") as log:
            self._daemon = subprocess.Popen(
                [*OURS, "run", "--config", str(self.file), "--ready-file", str(ready)],
                env=self._environ, stdout=log, stderr=log,
            )  # fmt: skip
        daemon = self._daemon
        awaited(lambda: ready.exists() or daemon.poll() is not None, READY)
        if daemon.poll() is not None or not ready.exists():
            said = self._log().read_text(encoding="utf-8", errors="replace").splitlines()
            raise KernelError(
                f"the daemon does not start: {said[-1] if said else 'it says nothing'}", remedy="see: agentsh-net doctor"
            )  # fmt: skip

    def cli(self, *words: str, codes: Sequence[int] = (0,)) -> str:
        """Run a command and return what it printed. Raises KernelError where it ends otherwise than it may."""
        done = subprocess.run(
            [*OURS, *words], env=self._environ, capture_output=True, text=True, timeout=COMMAND, check=False
        )
        if done.returncode not in codes:
            raise KernelError(f"agentsh-net {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout

    def hire(self, session: str, user: str, module: str, words: Sequence[str], home: Path) -> Hired:
        """Start an agent in a session of its own; it gets ready and waits."""
        command = [
            *OURS,
            "exec",
            "--session",
            session,
            "--as",
            user,
            "--",
            sys.executable,
            "-m",
            module,
            *words,
        ]
        with (self._folder / f"agent-{session}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env=self._environ,
                cwd=home,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        return Hired(process)

    def events(self, session: str) -> list[dict[str, Any]]:
        """Return the events of a session, the newest first."""
        found: list[dict[str, Any]] = json.loads(
            self.cli("mcp", "events", "--session", session, "--limit", "1000", "--json")
        )
        return found

    def stop(self) -> None:
        """Stop the daemon in good order, if it runs."""
        if self._daemon is None or self._daemon.poll() is not None:
            return
        self._daemon.send_signal(signal.SIGTERM)
        try:
            self._daemon.wait(STOP)
        except subprocess.TimeoutExpired:
            self._daemon.kill()
            self._daemon.wait()

    def _log(self) -> Path:
        return self._folder / "daemon.log"


def awaited(claim: Callable[[], Any], within: float, pause: float = 0.02) -> Any:
    """Return the first true value of a claim, or its last one after so many seconds."""
    deadline = time.monotonic() + within
    while not (value := claim()) and time.monotonic() < deadline:
        time.sleep(pause)
    return value


def word(stream: IO[str] | None) -> str:
    """Return the next line of a program that we started; empty when it has ended."""
    return stream.readline().strip() if stream else ""
