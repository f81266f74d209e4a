"""The program says its version, and gives each shell a script that completes its commands."""

import os
import subprocess
import sys

import pytest

from agentsh_net import __version__


def test_the_version_is_the_packages(run):
    assert run("version").stdout == f"agentsh-net {__version__}\n" == run("--version").stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(run, shell):
    result = run("completion", shell)
    assert result.exit_code == 0
    assert "_AGENTSH_NET_COMPLETE" in result.stdout


def test_an_unknown_shell_is_a_usage_error(run):
    assert run("completion", "csh").exit_code == 2


def test_the_script_finds_commands_two_levels_down():
    environment = {
        **os.environ,
        "_AGENTSH_NET_COMPLETE": "bash_complete",
        "COMP_WORDS": "agentsh-net mcp pins ",
        "COMP_CWORD": "3",
    }
    seen = subprocess.run(
        [sys.executable, "-m", "agentsh_net"], env=environment, capture_output=True, text=True
    )
    assert set(seen.stdout.split()) == {"plain,list", "plain,diff", "plain,trust", "plain,reset"}
