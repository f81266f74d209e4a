"""Errors say where they are and what to do next."""

from __future__ import annotations

from agentsh_net.core.errors import ConfigError, KernelError, Problem, ProtocolError, StoreError


def test_a_problem_names_its_place_what_was_found_and_what_was_expected() -> None:
    assert str(Problem("a.b[2]", "7", "text")) == "a.b[2]: found 7; expected text"
    assert (
        str(Problem("", "a list", "a mapping", line=3))
        == "(top level): found a list; expected a mapping (line 3)"
    )


def test_a_problem_of_a_whole_file_names_the_file_once() -> None:
    assert (
        Problem("/p.yaml", "nothing", "a file").within("/p.yaml") == "/p.yaml: found nothing; expected a file"
    )
    assert Problem("a", "1", "2").within("/p.yaml") == "/p.yaml: a: found 1; expected 2"
    assert Problem("--ready-file", "1", "2").within("/p.yaml") == "--ready-file: found 1; expected 2"


def test_a_config_error_tells_every_problem_on_its_own_line() -> None:
    assert str(ConfigError([Problem("a", "1", "2"), Problem("b", "3", "4")])).count("\n") == 1


def test_the_others_carry_what_mends_them() -> None:
    assert KernelError("x", layer="ebpf", remedy="r").remedy == "r"
    assert StoreError("x", remedy="r").remedy == "r"
    assert ProtocolError("x").status == 400
