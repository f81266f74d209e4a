"""What is described is what execvp would start, links followed, and the files that its arguments name; nothing else."""

from __future__ import annotations

import hashlib
from pathlib import Path

from agentsh_proxy.shim.binary import describe


def program(path: Path, text: str) -> str:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_the_path_is_searched_in_order_and_links_are_followed(tmp_path: Path) -> None:
    program(tmp_path / "b" / "server", "second")
    digest = program(tmp_path / "real" / "x", "first")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "server").symlink_to(tmp_path / "real" / "x")
    (tmp_path / "0" / "server").mkdir(parents=True)  # a directory is no program
    environ = {"PATH": ":".join(str(tmp_path / folder) for folder in ("0", "a", "b"))}
    expected = {"executable": str(tmp_path / "real" / "x"), "sha256": digest, "scripts": []}
    assert describe(["server"], environ) == expected


def test_an_interpreters_script_counts_and_so_does_a_file_behind_an_option(tmp_path: Path) -> None:
    digest = program(tmp_path / "py", "interpreter")
    script, hook = program(tmp_path / "server.py", "print()"), program(tmp_path / "hook.mjs", "x")
    command = [str(tmp_path / "py"), "-u", f"--import={tmp_path}/hook.mjs", f"{tmp_path}/server.py", str(tmp_path), "--flag"]  # fmt: skip
    found = describe(command, {})
    assert found is not None
    assert found["sha256"] == digest
    assert [(Path(s["path"]).name, s["sha256"]) for s in found["scripts"]] == [
        ("hook.mjs", hook),
        ("server.py", script),
    ]


def test_of_many_files_the_first_count_and_a_word_that_is_no_path_harms_nothing(tmp_path: Path) -> None:
    program(tmp_path / "py", "interpreter")
    files = [str(tmp_path / f"{n}.py") for n in range(12)]
    for path in files:
        Path(path).write_text(path)
    found = describe([str(tmp_path / "py"), "a\0b", "x" * 9999, *files], {})
    assert found is not None
    assert [script["path"] for script in found["scripts"]] == files[:8]


def test_what_is_not_there_or_cannot_be_run_is_not_described(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("no program")
    assert describe([str(tmp_path / "plain")], {}) is None
    assert describe(["server"], {"PATH": str(tmp_path)}) is None
