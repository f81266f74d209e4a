"""A user's file is read only if it is the user's, and what is wrong with it is told without its content."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentsh_net.mcp_clients.user_file import MAX_FILE, Owner, UnusableError, parse_json

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
SOMEBODY = 54321


def refusal(home: Path, path: Path, uid: int | None = None) -> str:
    with pytest.raises(UnusableError) as caught:
        Owner(home, uid).content(path)
    return str(caught.value)


def test_json_and_toml_are_read_by_their_suffix(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    (tmp_path / "a.toml").write_text("a = 1")
    (tmp_path / "b").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    owner = Owner(tmp_path)
    assert owner.content(tmp_path / "a.json") == owner.content(tmp_path / "a.toml") == {"a": 1}
    assert owner.content(tmp_path / "b") == {"a": 1}


def test_a_file_that_is_not_there_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert Owner(tmp_path).content(tmp_path / "absent.json") is None
    assert Owner(tmp_path).content(tmp_path / "file" / "x.json") is None
    assert Owner(tmp_path / "absent").content(tmp_path / "absent" / "x.json") is None


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", '{"token": hunter2}', "no valid JSON (line 1 column 11)"),
        ("a.json", '{"a": ', "no valid JSON"),
        ("a.json", "[" * 100_000, "no valid JSON"),
        ("a.toml", "token = hunter2", "no valid TOML (line 1, column 9)"),
        ("a.toml", "a = " + "[" * 100_000, "no valid TOML"),
        ("a.toml", "a = " + "1" * 5000, "no valid TOML"),
    ],
    ids=["json", "cut", "deep json", "toml", "deep toml", "huge number"],
)
def test_a_broken_file_is_told_by_its_place_alone(
    tmp_path: Path, name: str, content: str, reason: str
) -> None:
    (tmp_path / name).write_text(content)
    told = refusal(tmp_path, tmp_path / name)
    assert told.startswith(reason)
    assert "hunter2" not in told


def test_bytes_that_are_no_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'{"a": "\xff"}')
    assert refusal(tmp_path, tmp_path / "a.json") == "no valid JSON"


def test_a_link_to_a_file_of_the_same_owner_is_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text('{"a": 1}')
    (tmp_path / "a.json").symlink_to("real")
    assert Owner(tmp_path).content(tmp_path / "a.json") == {"a": 1}
    (tmp_path / "b.json").symlink_to("b.json")
    assert "symbolic links" in refusal(tmp_path, tmp_path / "b.json")


@needs_root
def test_root_follows_no_link_into_files_that_are_not_the_users(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, SOMEBODY, -1)
    (tmp_path / "secret").write_text('{"token": 1}')
    (home / "a.json").symlink_to(tmp_path / "secret")
    assert "through a symbolic link" in refusal(home, home / "a.json")
    os.chown(tmp_path / "secret", SOMEBODY, -1)
    assert Owner(home).content(home / "a.json") == {"token": 1}


def test_a_pipe_and_a_folder_do_not_hang_the_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    assert refusal(tmp_path, tmp_path / "pipe") == "no regular file"
    assert refusal(tmp_path, tmp_path / "folder") == "is a directory"


def test_a_file_has_a_bound(tmp_path: Path) -> None:
    with (tmp_path / "a.json").open("wb") as file:
        file.truncate(MAX_FILE + 1)
    assert refusal(tmp_path, tmp_path / "a.json") == "larger than 16 MiB"


@needs_root
def test_somebody_elses_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    os.chown(tmp_path / "a.json", SOMEBODY, -1)
    assert refusal(tmp_path, tmp_path / "a.json", SOMEBODY + 1).startswith(f"owned by uid {SOMEBODY}, not by")
    assert Owner(tmp_path, SOMEBODY).content(tmp_path / "a.json") == {}


@needs_root
def test_the_owner_of_the_home_is_who_counts(tmp_path: Path) -> None:
    os.chown(tmp_path, SOMEBODY, -1)
    (tmp_path / "a.json").write_text("{}")
    assert Owner(tmp_path).content(tmp_path / "a.json") == {}  # root's, and where it says
    os.chown(tmp_path / "a.json", SOMEBODY + 1, -1)
    assert refusal(tmp_path, tmp_path / "a.json").startswith("owned by uid")


@needs_root
def test_a_folder_that_is_a_link_does_not_lead_into_roots_files(tmp_path: Path) -> None:
    roots, home = tmp_path / "root", tmp_path / "home"
    roots.mkdir()
    home.mkdir()
    (roots / "mcp.json").write_text('{"token": 1}')
    (home / ".cursor").symlink_to(roots)
    assert "through a symbolic link" in refusal(home, home / ".cursor" / "mcp.json", SOMEBODY)
    assert Owner(home, 0).content(home / ".cursor" / "mcp.json") == {"token": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", {}),
        (" \n", {}),
        ('{"a": 1, // one\n "b": [2, /* two */ 3,], }', {"a": 1, "b": [2, 3]}),
        ('{"a": "// no comment, /* nor this */ ,}"}', {"a": "// no comment, /* nor this */ ,}"}),
        ('{"a": "\\"//", // x\n}', {"a": '"//'}),
        ('// first\n{"url": "https://h/",}', {"url": "https://h/"}),
    ],
)
def test_json_with_comments_and_trailing_commas_is_read(text: str, value: object) -> None:
    assert parse_json(text) == value


@pytest.mark.parametrize(
    "text", ["{", '{"a": "', "/*", '{"a" 1}', '"' + '\\"' * 200_000, "/*" * 200_000, "," * 200_000]
)
def test_what_is_no_json_is_refused_in_linear_time(text: str) -> None:
    with pytest.raises(ValueError, match=r"line \d+ column"):
        parse_json(text)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=10,
)


@given(JSON, st.sampled_from(["", "// comment\n", "/* , } */"]))
def test_json_in_comments_reads_as_the_same_json(value: object, comment: str) -> None:
    assert parse_json(f"{comment}{json.dumps(value, ensure_ascii=False)}{comment}") == value
