"""The first program in the corner: wires it up, starts the others, plays the scenarios three times over, and tells the CLI.

It prints a JSON object a line: `say` (what is being done), `seconds` (of the play, without
set-up), `outcome` (a row), `error` with `remedy` and `code`.
"""

from __future__ import annotations

import json
import os
import pwd
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from agentsh_net.core.errors import KernelError
from agentsh_net.demo import agent, box, cast, internet, scenarios
from agentsh_net.demo.operator import Hired, Operator, awaited, word
from agentsh_net.demo.outcome import Outcome, Run, decisive, outcome, stolen
from agentsh_net.demo.policies import policy
from agentsh_net.demo.scenarios import SCENARIOS, Scenario
from agentsh_net.demo.scenarios import Run as Which

NEWS: Final = 5.0  # seconds for events to be on record; the kernel's are there within a tenth
DISCOVERY: Final = 15.0  # seconds for the servers' tools to be known
# Ends well for a user who can read all that the agent needs.
LOOK: Final = """
import os, sys, agentsh_net
from importlib.util import find_spec
sys.exit(not (find_spec("mcp") and find_spec("anthropic") and os.access(sys.argv[1], os.X_OK)))
"""


class Play:
    """One performance in a folder."""

    def __init__(self, folder: Path) -> None:
        self.operator = Operator(folder)
        self.secrets = {scenario.name: f"demo-secret-{secrets.token_hex(8)}" for scenario in SCENARIOS}
        self.home = folder / "home"
        self._arrived = folder / "arrived.jsonl"
        self._suggested = folder / "suggested.yaml"
        self._agents: dict[Which, Hired] = {}
        self._runs: dict[tuple[Which, str], Run] = {}
        self._events: dict[Which, list[dict[str, Any]]] = {}
        self._user = readers_name(folder)

    def perform(self) -> list[Outcome]:
        """Play everything and return what came of it."""
        self._furnish()
        with everybody_else(self._arrived):
            say("starting the daemon over a policy that watches")
            self.operator.write(policy(self._arrived.parent, enforced=False))
            try:
                self.operator.start()
                began = time.monotonic()
                with self._hired():
                    awaited(self._known, DISCOVERY, pause=0.2)
                    self._acts()
                tell(seconds=round(time.monotonic() - began, 1))
            finally:
                self.operator.stop()
        return [self._outcome(scenario) for scenario in SCENARIOS]

    @contextmanager
    def _hired(self) -> Iterator[None]:
        """Start the agents of all runs, so that they get ready together; nobody is left when the block ends."""
        try:
            for which in Which:
                names = [scenario.name for scenario in scenarios.played_in(which)]
                self._agents[which] = self.operator.hire(
                    which.value, self._user, agent.__name__, names, self.home
                )
            yield
        finally:
            for hired in self._agents.values():
                hired.dismiss()

    def _acts(self) -> None:
        say("without enforcement: the agent runs under `agentsh-net exec`, nothing is blocked")
        self._act(Which.AUDIT)
        say(
            "with enforcement: enforce_policy, network.mode: enforce, llm_direct: refuse; `agentsh-net reload`"
        )
        self.operator.write(policy(self._arrived.parent, enforced=True))
        self.operator.cli("reload")
        self._act(Which.ENFORCED)
        say("with the policy of `agentsh-net policy suggest`, from what that session did")
        self.operator.cli(
            "policy", "suggest", "--session", Which.ENFORCED.value, "--out", str(self._suggested)
        )
        self.operator.cli("policy", "check", str(self._suggested))
        self.operator.write(self._suggested.read_text(encoding="utf-8"))
        self.operator.cli("reload")
        self._act(Which.SUGGESTED)

    def _act(self, which: Which) -> None:
        """Run the agent through the scenarios of a run, and take note of what came of each."""
        self._arrived.write_text("", encoding="utf-8")
        (self.home / scenarios.VICTIM).write_text("the quarter's numbers\n", encoding="utf-8")
        wanted = scenarios.played_in(which)
        ended = {row["scenario"]: row for row in self._agents[which].play()}
        for scenario in wanted:
            row = ended.get(scenario.name, {"honest": 0})
            self._runs[which, scenario.name] = Run(
                self._worked(scenario), row["honest"], scenario.name in ended
            )
        if which is not Which.AUDIT:
            awaited(lambda: self._all_told(which, wanted), NEWS, pause=0.2)

    def _all_told(self, which: Which, wanted: tuple[Scenario, ...]) -> bool:
        self._events[which] = self.operator.events(which.value)
        return all(decisive(scenario, self._events[which]) for scenario in wanted)

    def _worked(self, scenario: Scenario) -> bool:
        if scenario.thief[0] == cast.FILES:
            return not (self.home / scenarios.VICTIM).exists()
        rows = [json.loads(line) for line in self._arrived.read_text(encoding="utf-8").splitlines()]
        return stolen(scenario, rows, self.secrets[scenario.name])

    def _outcome(self, scenario: Scenario) -> Outcome:
        without, with_ = self._runs[Which.AUDIT, scenario.name], self._runs[scenario.run, scenario.name]
        return outcome(scenario, without, with_, self._events[scenario.run])

    def _furnish(self) -> None:
        """Make the agent's directory with the secrets in it."""
        self.home.mkdir()
        for name, secret in self.secrets.items():
            (self.home / name).mkdir()
            (self.home / scenarios.credentials(name)).write_text(f"{secret}\n", encoding="utf-8")
        owner = pwd.getpwnam(self._user)
        os.chown(self.home, owner.pw_uid, owner.pw_gid)

    def _known(self) -> bool:
        """Say whether the tools of all servers are known, but those of the one that the agent starts and of denied ones."""
        servers = json.loads(self.operator.cli("status", "--json", codes=(0, 1)))["servers"]
        asked = [r for r in servers if r["type"] != "stdio" and "block" not in (r["action"], r["would"])]
        return all(row["tools"] for row in asked)


@contextmanager
def everybody_else(arrived: Path) -> Iterator[None]:
    """Run the servers and the provider at the other end of a wire until the block ends. Raises KernelError."""
    command = [sys.executable, "-m", internet.__name__, str(arrived)]
    say("starting eight MCP servers and a model's provider")
    with (arrived.parent / "internet.log").open("ab") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        if word(process.stdout) == "apart" and process.stdin:
            box.wire(process.pid)
            process.stdin.write("wired\n")
            process.stdin.flush()
        if word(process.stdout) != "serving":
            raise KernelError(
                "the demonstration's servers do not start", remedy="look at internet.log with --keep DIR"
            )
        yield
    finally:
        process.kill()
        process.wait()


def readers_name(folder: Path) -> str:
    """Return whom the agent can run as: somebody without privileges who can read this Python and the folder, else root."""
    for name in ("nobody", os.environ.get("SUDO_USER", "")):
        if name and name != "root" and _can_read(name, folder):
            return name
    say(f"the agent runs as root, because nobody else may read this Python's files and {folder}")
    return "root"


def _can_read(name: str, folder: Path) -> bool:
    command = [sys.executable, "-c", LOOK, str(folder)]
    try:
        user = pwd.getpwnam(name)
        done = subprocess.run(
            command, user=user.pw_uid, group=user.pw_gid, extra_groups=[], cwd="/", stderr=subprocess.DEVNULL, check=False
        )  # fmt: skip
    except (KeyError, PermissionError):  # no such user, or the interpreter is in a home that is closed to him
        return False
    return done.returncode == 0


def say(text: str) -> None:
    """Tell what is being done."""
    tell(say=text)


def tell(**row: Any) -> None:
    """Tell the CLI something."""
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


def main() -> int:
    """Play in the cgroup and the folder that are given; the exit status is the CLI's business."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    cgroup, folder = map(Path, sys.argv[1:3])
    try:
        box.enter(cgroup)
    except (OSError, subprocess.CalledProcessError) as error:
        tell(
            error=f"no namespaces of one's own here: {error}", code=3,
            remedy="run it as root on the machine itself, or in a container with CAP_SYS_ADMIN and CAP_NET_ADMIN",
        )  # fmt: skip
        return 1
    try:
        for row in Play(folder).perform():
            tell(outcome=row.to_json())
    except KernelError as error:
        tell(error=str(error), code=3, remedy=error.remedy)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
