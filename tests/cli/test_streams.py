"""A caller that closes, fills or stops reading a stream gets an exit code that says so, and never a traceback."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from agentsh_net import __version__

PROGRAM = [sys.executable, "-m", "agentsh_net"]


def shell(command: str, **environment: str) -> subprocess.CompletedProcess:
    program = shlex.join(PROGRAM)
    return subprocess.run(
        ["bash", "-c", command.replace("PROGRAM", program)],
        capture_output=True, text=True, env={**os.environ, **environment},
    )  # fmt: skip


@pytest.mark.parametrize("command", ["completion bash", "--help", "--version"])
def test_who_reads_no_more_ends_the_command_as_sigpipe_would(command):
    reading, writing = os.pipe()
    os.close(reading)
    ended = subprocess.run([*PROGRAM, *command.split()], stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, "")


@pytest.mark.parametrize("command", ["completion bash", "version", "mcp --help", "--help", "--version"])
def test_a_full_disk_is_an_error_of_the_environment(command):
    seen = shell(f"PROGRAM {command} > /dev/full; echo $? >&2")
    assert seen.stderr == (
        "error: standard output cannot be written: No space left on device\n"
        "  fix: free space there, or write elsewhere\n3\n"
    )


@pytest.mark.parametrize("closed", ["0<&-", "2>&-", "0<&- 2>&-"])
def test_closed_streams_are_nowhere(closed):
    seen = shell(f"(PROGRAM version {closed}); echo $?")
    assert seen.stdout == f"agentsh-net {__version__}\n0\n"
    assert seen.stderr == ""


@pytest.mark.parametrize("command", ["version", "completion bash", "--help"])
def test_what_cannot_be_printed_because_the_output_is_closed_is_an_error(command):
    """A cron job that lost its output took `mcp calls` for an empty list."""
    told = "error: standard output cannot be written: Bad file descriptor\n  fix: free space there, or write elsewhere\n"
    seen = shell(f"PROGRAM {command} >&-; echo $? >&2")
    assert seen.stderr == f"{told}3\n"
    assert shell(f"(PROGRAM {command} <&- >&- 2>&-); echo $?").stdout == "3\n"


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_closed_streams_are_nowhere_for_whom_we_start_too(closed, tmp_path):
    """A worker's socket got the number 2 and libuv ended it; a shim without standard input waited for a pipe of its own."""
    told = tmp_path / "told"
    server = shlex.quote(f"ls -l /proc/self/fd/[012] | grep -c -e null -e pipe > {told}; cat")
    seen = shell(f"timeout 60 PROGRAM --socket /nowhere/s shim --server x -- sh -c {server} {closed} </dev/null; echo $? >&2".replace("</dev/null", "" if "0<" in closed else "</dev/null"))  # fmt: skip
    assert told.read_text() == "3\n"
    assert seen.stderr.endswith("0\n")


def test_an_error_without_a_place_to_say_it_keeps_its_exit_code():
    assert shell("(PROGRAM dance 2>&-); echo $?").stdout == "2\n"


def test_a_letter_that_a_terminal_cannot_spell_is_an_escape():
    code = "from agentsh_net.cli import streams; streams.prepare(); print('caf\\u00e9')"
    seen = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code], capture_output=True,
        env={"PYTHONIOENCODING": "ascii", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )  # fmt: skip
    assert (seen.stdout, seen.stderr) == (b"caf\\xe9\n", b"")


def test_json_is_ascii_where_the_output_is_not_in_utf8():
    code = "from agentsh_net.cli import output, streams; streams.prepare(); print(output.json_text(['é🙂\\\\xe9']))"
    seen = subprocess.run(
        [sys.executable, "-X", "utf8=0", "-c", code], capture_output=True,
        env={"PYTHONIOENCODING": "latin-1", "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
    )  # fmt: skip
    assert (json.loads(seen.stdout.decode("ascii")), seen.stderr) == (["é🙂\\xe9"], b"")
