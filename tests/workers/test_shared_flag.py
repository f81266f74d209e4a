"""A worker sees the flag the moment it is set, and cannot set or resize it."""

from __future__ import annotations

import mmap
import os

import pytest

from agentsh_net.workers.shared_flag import SharedFlag


def test_who_maps_it_sees_it_at_once():
    flag = SharedFlag("test")
    with flag.shown() as shown, mmap.mmap(shown.fileno(), 1, mmap.MAP_SHARED, mmap.PROT_READ) as seen:
        assert seen[0] == 0
        flag.set()
        assert seen[0] == 1
        flag.close()
        assert seen[0] == 1


def test_only_its_owner_writes_it():
    flag = SharedFlag("test")
    with flag.shown() as shown:
        with pytest.raises(PermissionError):
            os.pwrite(shown.fileno(), b"\1", 0)
        with pytest.raises(PermissionError):
            mmap.mmap(shown.fileno(), 1, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
        with pytest.raises(PermissionError):
            os.ftruncate(shown.fileno(), 9)
    flag.close()
