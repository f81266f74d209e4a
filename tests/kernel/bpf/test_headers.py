"""BCC is offered our stand-ins first, then real headers; split packages are merged by links and nothing else is written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentsh_net.kernel.bpf import headers


@pytest.fixture
def debian(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Debian's two halves of one header package, as far as they matter."""
    usr_src = tmp_path / "src"
    for name in (
        "linux-headers-6.1.0-9-amd64/include/generated/autoconf.h",
        "linux-headers-6.1.0-9-amd64/arch/x86/include/generated/uapi/asm/types.h",
        "linux-headers-6.1.0-9-common/include/linux/kconfig.h",
        "linux-headers-6.1.0-9-common/arch/x86/include/asm/page.h",
        "linux-headers-6.12.1-common/include/linux/kconfig.h",
    ):
        (usr_src / name).parent.mkdir(parents=True, exist_ok=True)
        (usr_src / name).write_text(name)
    monkeypatch.setattr(headers, "_USR_SRC", usr_src)
    monkeypatch.setattr(headers, "_MODULES", tmp_path / "modules")
    return usr_src


def test_our_stand_ins_come_first(debian: Path, tmp_path: Path) -> None:
    source = Path(__file__).parents[3] / "bpf"
    first = next(iter(headers.candidates(source, tmp_path)))
    assert (first.name, first.path) == ("stand-ins", str(source / "bcc"))


def test_the_running_kernels_own_headers_are_left_to_bcc(debian: Path, tmp_path: Path) -> None:
    (tmp_path / "modules" / os.uname().release / "build").mkdir(parents=True)
    first = next(iter(headers.candidates(tmp_path, tmp_path / "scratch")))
    assert first.path == ""


def test_split_headers_are_merged_without_touching_them(debian: Path, tmp_path: Path) -> None:
    before = sorted(debian.rglob("*"))
    (found,) = headers.candidates(tmp_path, tmp_path / "scratch")
    tree = Path(found.path)
    assert (tree / "include/generated/autoconf.h").read_text().endswith("amd64/include/generated/autoconf.h")
    assert (tree / "include/linux/kconfig.h").read_text().endswith("common/include/linux/kconfig.h")
    assert (tree / "arch/x86/include/generated/uapi/asm/types.h").is_file()
    assert (tree / "arch/x86/include/asm/page.h").is_file()
    assert sorted(debian.rglob("*")) == before


def test_the_common_half_of_another_version_is_not_mixed_in(debian: Path, tmp_path: Path) -> None:
    (found,) = headers.candidates(tmp_path, tmp_path / "scratch")
    assert "6.12" not in str((Path(found.path) / "include/linux").resolve())


def test_a_host_without_any_headers_has_only_the_stand_ins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headers, "_USR_SRC", tmp_path / "none")
    monkeypatch.setattr(headers, "_MODULES", tmp_path / "none")
    assert list(headers.candidates(tmp_path, tmp_path)) == []
