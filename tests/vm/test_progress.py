"""A run in a guest tells of each file when it is through, and one that goes on leaves out what passed, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
FILES = {
    "test_good.py": "import pytest\ndef test_a(): pass\n@pytest.mark.skip(reason='why')\ndef test_b(): pass\n",
    "test_bad.py": "def test_a(): pass\ndef test_b(): assert False\n",
    "test_broken.py": "import pytest\n@pytest.fixture\ndef it(): raise ValueError\ndef test_a(it): pass\n",
}


def run(folder: Path, *how: str) -> tuple[str, list[str]]:
    """Run what is in the folder, and return what the terminal and the results say."""
    results = folder / "results"
    command = [sys.executable, "-m", "pytest", "-p", "vm.progress", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [*command, *how, str(folder)],
        env={"PYTHONPATH": str(TESTS), "AGENTSH_NET_VM_RESULTS": str(results), "PATH": "/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    told = [line.partition(" in ")[0] for line in results.read_text().splitlines()]
    return done.stdout, sorted(told)


@pytest.mark.parametrize("how", [(), ("-n", "2", "--dist", "loadfile")], ids=["one process", "two"])
def test_each_file_is_told_once_with_what_came_of_it_and_only_what_passed_is_left_out(
    tmp_path: Path, how: tuple[str, ...]
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    said, told = run(tmp_path, *how)
    first = [
        "failed test_bad.py: 1 failed, 1 passed",
        "failed test_broken.py: 1 failed",
        "passed test_good.py: 1 passed, 1 skipped",
    ]
    assert told == first
    assert [
        said.count(f"vm: failed {test}") for test in ("test_bad.py::test_b", "test_broken.py::test_a")
    ] == [1, 1]

    (tmp_path / "test_bad.py").write_text("def test_a(): pass\n")
    said, told = run(tmp_path, *how)
    assert told == sorted([*first, "passed test_bad.py: 1 passed", "failed test_broken.py: 1 failed"])
