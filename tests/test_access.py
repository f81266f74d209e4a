"""Files meant for the group are never open to others, and belong to the group where there is one."""

import os

import pytest

from agentsh_net import access


def test_share_sets_the_mode_whatever_the_umask(tmp_path):
    path = tmp_path / "f"
    path.touch()
    before = os.umask(0o077)
    try:
        access.share(path, 0o640)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_share_gives_the_file_to_the_group(tmp_path, monkeypatch):
    monkeypatch.setattr(access, "group_id", lambda: 4321)
    path = tmp_path / "f"
    path.touch()
    access.share(path, 0o660)
    assert path.stat().st_gid == 4321


def test_root_without_the_right_to_give_files_away_keeps_them_for_root(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError

    monkeypatch.setattr(access, "group_id", lambda: 4321)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(os, "chown", refuse)
    path = tmp_path / "f"
    path.touch()
    access.share(path, 0o660)
    assert path.stat().st_mode & 0o777 == 0o660


def test_a_group_that_does_not_exist_has_no_id(monkeypatch):
    monkeypatch.setattr(access, "GROUP", "no-such-group-here")
    assert access.group_id() is None


def test_a_directory_is_made_for_owner_and_group_only(tmp_path):
    path = tmp_path / "a" / "b"
    access.make_directory(path)
    assert path.stat().st_mode & 0o777 == 0o750


def test_a_directory_that_exists_keeps_its_mode(tmp_path):
    tmp_path.chmod(0o711)
    access.make_directory(tmp_path)
    assert tmp_path.stat().st_mode & 0o777 == 0o711
