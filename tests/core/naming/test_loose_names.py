"""What a client or a model wraps around a tool's name comes off again, in bounded time."""

from __future__ import annotations

import pytest

from agentsh_net.core.naming.loose_names import readings


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("functions.delete", "delete"),
        ("functions.mcp__fs__delete", "mcp__fs__delete"),
        ("default_api:mcp_fs_delete", "mcp_fs_delete"),
        ("default_api.functions.delete", "delete"),
        ("mcp0_delete", "delete"),
        ("mcp12_delete", "delete"),
        ("delete_mcp_fs", "fs__delete"),
        ("a_mcp_b_mcp_fs", "fs__a_mcp_b"),
        ("fs____delete____mcp", "fs__delete"),
        ("mcp__plugin_office_fs__delete", "mcp__fs__delete"),
        ("mcp__plugin_my_office_fs__delete", "mcp__fs__delete"),
    ],
)
def test_what_was_wrapped_around_a_name_comes_off(name: str, meant: str) -> None:
    assert meant in readings(name)


@pytest.mark.parametrize(
    "name", ["delete", "mcp__fs__delete", "fs_delete", "mcp_fs_delete", "functional_delete", ""]
)
def test_an_ordinary_name_is_read_in_no_other_way(name: str) -> None:
    assert list(readings(name)) == []


@pytest.mark.parametrize("unit", ["functions.", "mcp__plugin_", "____", "_mcp_", "mcp1_"])
def test_a_long_name_has_few_readings(unit: str) -> None:
    assert len(list(readings(unit * 20_000))) == 0
    assert len(list(readings((unit * 160)[:160]))) < 20
