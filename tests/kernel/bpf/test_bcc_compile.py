"""The probes compile and pass the verifier with our stand-in headers, and with the real headers that are installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from netns import box

from agentsh_net.kernel.bpf import bcc_compile, headers
from agentsh_net.kernel.bpf.probe_source import PROGRAMS, directory

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.bcc,
    pytest.mark.skipif(
        importlib.util.find_spec("bcc") is None, reason="no bcc here: sudo apt install python3-bpfcc"
    ),
]


def loaded_programs(wanted: str, scratch: Path) -> int:
    """Compile with the named tree in a forked child: BCC's memory and descriptors stay out of the test run."""

    def inside() -> int:
        tree = next(t for t in headers.candidates(directory(), scratch) if t.name == wanted)
        module = bcc_compile.compile_probes(tree, directory())
        return len(module.funcs)

    return box.in_box(inside)


def test_the_probes_load_without_any_kernel_headers(tmp_path: Path) -> None:
    assert loaded_programs("stand-ins", tmp_path) == len(PROGRAMS)


def test_the_probes_load_with_real_headers_of_whatever_version(tmp_path: Path) -> None:
    real = [t.name for t in headers.candidates(directory(), tmp_path) if t.name != "stand-ins"]
    if not real:
        pytest.skip("no kernel headers are installed here: sudo apt install linux-headers-amd64")
    assert loaded_programs(real[0], tmp_path) == len(PROGRAMS)
