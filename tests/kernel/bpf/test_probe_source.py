"""The installation has the probes' source, and the programs it defines are those that are loaded and recognised later."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import probe_source


def test_the_source_is_found() -> None:
    assert (probe_source.directory() / "agentsh.h").is_file()


def test_the_source_defines_exactly_the_programs_and_maps_that_are_loaded() -> None:
    text = (probe_source.directory() / "connect.bpf.c").read_text()
    assert re.findall(r"^AGENTSH_PROGRAM\(.*?\) int (\w+)\(", text, re.MULTILINE) == list(
        probe_source.PROGRAMS
    )
    bcc, libbpf = text.split("#else", 1)
    assert set(
        re.findall(
            r"^BPF_\w+\((?:.*, )?(rules|prefixes|sieve|config|counters|makers|names|streams|records)\b",
            bcc,
            re.MULTILINE,
        )
    ) == set(probe_source.MAPS)
    assert re.findall(r'^} (\w+) SEC\("\.maps"\)', libbpf, re.MULTILINE) == list(probe_source.MAPS)


def test_program_names_fit_the_kernel_so_that_a_restart_recognises_them() -> None:
    assert all(len(name) <= 15 and name.startswith("agentsh_") for name in probe_source.PROGRAMS)


def test_an_installation_without_the_source_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(probe_source, "_PACKAGE", tmp_path / "agentsh_net")
    with pytest.raises(KernelError) as caught:
        probe_source.directory()
    assert caught.value.remedy == "reinstall agentsh-net"
