"""`./dev` installs into its own checkout's virtual environment, leaves another's alone, and runs all tests on all cores."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# All that `./dev setup` runs but for apt, which it can do without.
TOOLS = ("sh", "dirname", "cat", "sed", "cksum", "grep", "id", "uname", "ls", "nproc")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout whose virtual environment notes what is installed instead of installing it."""
    for tool in TOOLS:
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / tool).symlink_to(str(shutil.which(tool)))
    (tmp_path / "mine/venv/bin").mkdir(parents=True)
    python = tmp_path / "mine/venv/bin/python"
    python.write_text('#!/bin/sh\necho "$@" >> "${0%/bin/python}/installed"\n')
    python.chmod(0o755)
    for name in ("dev", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path / "mine")
    return tmp_path / "mine"


def runs_the_code_of(checkout: Path, other: Path) -> None:
    info = checkout / "venv/lib/python3.11/site-packages/agentsh_net-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "direct_url.json").write_text(f'{{"dir_info": {{"editable": true}}, "url": "file://{other}"}}')


def dev(checkout: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    environ = {"PATH": str(checkout.parent / "bin"), "AGENTSH_NET_VENV": "venv", "LANG": "C"}
    return subprocess.run(["./dev", *arguments], cwd=checkout, env=environ, capture_output=True, text=True)


def test_the_virtual_environment_of_another_checkout_is_refused(checkout: Path) -> None:
    other = checkout.parent / "theirs"
    other.mkdir()
    (other / "dev").touch()
    runs_the_code_of(checkout, other)
    done = dev(checkout, "setup")
    assert done.returncode == 3
    assert f"venv is the virtual environment of {other}: name another one" in done.stderr
    assert not (checkout / "venv/installed").exists()


@pytest.mark.parametrize("whose", ["mine", "a checkout that is gone", ""])
def test_a_virtual_environment_that_is_nobody_elses_is_set_up(checkout: Path, whose: str) -> None:
    if whose:
        runs_the_code_of(checkout, checkout.parent / whose)
    done = dev(checkout, "setup")
    assert done.returncode == 0, done.stderr
    assert "-e .[dev]" in (checkout / "venv/installed").read_text()


@pytest.mark.parametrize(
    ("asked", "run"),
    [
        ((), f"-n {min(len(os.sched_getaffinity(0)) + 1, 4)} --dist worksteal"),
        (("tests/test_dev.py", "-x"), "tests/test_dev.py -x"),
    ],
    ids=["all", "some"],
)
def test_all_tests_run_on_all_cores_and_some_as_they_are_asked_for(
    checkout: Path, asked: tuple[str, ...], run: str
) -> None:
    assert dev(checkout, "test", *asked).returncode == 0
    assert (checkout / "venv/installed").read_text().splitlines()[-1] == f"-m pytest {run}"
