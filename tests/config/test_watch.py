"""Every way of changing a policy is noticed, once, however the file is put there; nothing else is."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agentsh_net.config import watch as module
from agentsh_net.config.watch import Inotify, Stamp, Watch, directories, stamp_of

# Far above the debounce, far below pytest's own timeout: a change that is not noticed within it is lost.
PATIENCE = 10.0


class Seen:
    """Counts the calls, and lets a test wait for one."""

    def __init__(self) -> None:
        self.calls = 0
        self._event = asyncio.Event()

    def __call__(self) -> None:
        self.calls += 1
        self._event.set()

    async def once(self) -> None:
        await asyncio.wait_for(self._event.wait(), PATIENCE)
        self._event.clear()


@asynccontextmanager
async def watching(
    path: Path, *also: Path, read: dict[Path, Stamp] | None = None
) -> AsyncIterator[tuple[Watch, Seen]]:
    seen = Seen()
    versions = {p: stamp_of(p) for p in (path, *also)} if read is None else read
    watch = Watch(path, asyncio.get_running_loop(), seen, read=versions)
    try:
        yield watch, seen
    finally:
        watch.close()


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "etc" / "policy.yaml"
    path.parent.mkdir()
    path.write_text("version: 1\n")
    return path


@pytest.fixture
def slow_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the noticing to inotify: a poll would come after the test has given up."""
    monkeypatch.setattr(module, "POLL_BESIDE_INOTIFY", 1000.0)


def rewrite(path: Path) -> None:
    path.write_text("version: 1\n# edited\n")


def replace(path: Path) -> None:
    new = path.with_name("new")
    new.write_text("version: 1\n# edited\n")
    new.rename(path)


def remove(path: Path) -> None:
    path.unlink()


def move_away_and_write(path: Path) -> None:
    path.rename(path.with_name("policy.yaml~"))
    path.write_text("version: 1\n# edited\n")


def link_over(path: Path) -> None:
    new = path.with_name("new")
    new.symlink_to("/dev/null")
    new.rename(path)


def touch(path: Path) -> None:
    os.utime(path)


@pytest.mark.usefixtures("slow_polls")
@pytest.mark.parametrize("edit", [rewrite, replace, remove, move_away_and_write, link_over, touch])
def test_an_edit_is_noticed_whatever_the_editor_does(policy: Path, edit: Callable[[Path], None]) -> None:
    async def test() -> None:
        async with watching(policy) as (_, seen):
            edit(policy)
            await seen.once()

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_edits_are_noticed_one_after_the_other(policy: Path) -> None:
    async def test() -> None:
        async with watching(policy) as (_, seen):
            for edit in (replace, rewrite, remove, rewrite, move_away_and_write, replace):
                edit(policy)
                await seen.once()

    run(test)


@pytest.mark.usefixtures("slow_polls")
@pytest.mark.parametrize("new", [False, True], ids=["truncated", "made anew"])
def test_a_file_is_not_read_before_its_writer_has_closed_it(policy: Path, new: bool) -> None:
    async def test() -> None:
        async with watching(policy) as (watch, seen):
            if new:
                policy.unlink()
                await seen.once()
            with policy.open("w") as file:
                file.write("version: 1\n")
                file.flush()
                watch._look()
                assert seen.calls == int(new)
            await seen.once()

    run(test)


def test_a_writer_who_never_closes_the_file_holds_no_change_back(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL", 0.05)
    monkeypatch.setattr(module, "WRITER", 0.1)

    async def test() -> None:
        async with watching(policy) as (_, seen):
            with policy.open("a") as file:
                file.write("# edited\n")
                file.flush()
                await seen.once()

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_a_file_that_comes_later_is_noticed(policy: Path) -> None:
    policy.unlink()

    async def test() -> None:
        async with watching(policy) as (_, seen):
            rewrite(policy)
            await seen.once()

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_steps_within_the_debounce_are_one_change(policy: Path) -> None:
    async def test() -> None:
        async with watching(policy) as (_, seen):
            for number in range(20):
                policy.write_text(f"version: 1\n# {number}\n")
            await seen.once()
            replace(policy)
            await seen.once()
            assert seen.calls == 2

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_other_files_of_the_folder_are_not_the_policys_business(policy: Path) -> None:
    async def test() -> None:
        async with watching(policy) as (_, seen):
            for number in range(5):
                policy.with_name(f"other{number}").write_text("x")
                await asyncio.sleep(module.DEBOUNCE)  # each in a look of its own
            rewrite(policy)
            await seen.once()
            assert seen.calls == 1

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_the_swap_of_a_mounted_config_map_is_noticed_again_and_again(tmp_path: Path) -> None:
    def publish(version: int) -> None:
        folder = tmp_path / f"..version{version}"
        folder.mkdir()
        (folder / "policy.yaml").write_text(f"version: 1\n# {version}\n")
        (tmp_path / "..data_tmp").symlink_to(folder.name)
        (tmp_path / "..data_tmp").rename(tmp_path / "..data")

    publish(0)
    policy = tmp_path / "policy.yaml"
    policy.symlink_to("..data/policy.yaml")

    async def test() -> None:
        async with watching(policy) as (_, seen):
            for version in range(1, 4):
                publish(version)
                await seen.once()
            assert seen.calls == 3

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_the_file_behind_a_link_is_noticed(policy: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.yaml"
    link.symlink_to(policy)

    async def test() -> None:
        async with watching(link) as (_, seen):
            replace(policy)
            await seen.once()

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_a_secret_that_went_in_is_noticed_too(policy: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secrets" / "token"
    secret.parent.mkdir()
    secret.write_text("a")

    async def test() -> None:
        async with watching(policy, secret) as (_, seen):
            replace(secret)
            await seen.once()

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_what_is_followed_next_replaces_what_was_followed(policy: Path, tmp_path: Path) -> None:
    secret = tmp_path / "token"
    secret.write_text("a")

    async def test() -> None:
        async with watching(policy) as (watch, seen):
            watch.follow({policy: stamp_of(policy), secret: stamp_of(secret)})
            replace(secret)
            await seen.once()
            watch.follow({policy: stamp_of(policy)})
            replace(secret)
            replace(policy)
            await seen.once()
            assert seen.calls == 2

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_a_change_between_reading_and_watching_is_noticed(policy: Path) -> None:
    version = stamp_of(policy)
    rewrite(policy)

    async def test() -> None:
        async with watching(policy, read={policy: version}) as (_, seen):
            await seen.once()

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_a_reload_within_the_callback_is_no_second_change(policy: Path) -> None:
    async def test() -> None:
        calls = []
        done = asyncio.Event()

        def reload() -> None:
            calls.append(stamp_of(policy))
            watch.follow({policy: stamp_of(policy)})
            done.set()

        watch = Watch(policy, asyncio.get_running_loop(), reload)
        replace(policy)
        await asyncio.wait_for(done.wait(), PATIENCE)
        done.clear()
        replace(policy)
        await asyncio.wait_for(done.wait(), PATIENCE)
        watch.close()
        assert len(calls) == 2

    run(test)


def test_without_inotify_it_polls(policy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> Inotify:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(module, "Inotify", refuse)
    monkeypatch.setattr(module, "POLL", 0.02)

    async def test() -> None:
        async with watching(policy) as (_, seen):
            for edit in (replace, remove, rewrite):
                edit(policy)
                await seen.once()

    run(test)


def test_a_folder_that_is_made_anew_is_found_by_the_poll(
    policy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "POLL_BESIDE_INOTIFY", 0.02)

    async def test() -> None:
        async with watching(policy) as (watch, seen):
            policy.unlink()
            policy.parent.rmdir()
            await seen.once()
            policy.parent.mkdir()
            policy.write_text("version: 1\n")
            await seen.once()
            assert watch._inotify is not None  # and again at once from now on

    run(test)


@pytest.mark.usefixtures("slow_polls")
def test_after_close_nothing_is_told_and_nothing_is_held(policy: Path) -> None:
    async def test() -> None:
        before = len(os.listdir("/proc/self/fd"))
        async with watching(policy) as (watch, seen):
            assert len(os.listdir("/proc/self/fd")) == before + 1
            rewrite(policy)
            watch.close()
            assert len(os.listdir("/proc/self/fd")) == before
            await asyncio.sleep(3 * module.DEBOUNCE)
            assert seen.calls == 0

    run(test)


def test_the_folders_of_every_link_on_the_way_are_watched(tmp_path: Path) -> None:
    real = tmp_path / "real"
    (real / "v1").mkdir(parents=True)
    (real / "v1" / "policy.yaml").write_text("")
    (real / "current").symlink_to("v1")
    (tmp_path / "etc").symlink_to("real")
    (tmp_path / "policy.yaml").symlink_to("etc/current/policy.yaml")
    found = {p.resolve() for p in directories(tmp_path / "policy.yaml")}
    assert {tmp_path, real, real / "v1"} <= found


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert directories(tmp_path / "a") == {tmp_path}
    assert stamp_of(tmp_path / "a") is None


def test_a_folder_that_is_not_there_is_no_failure(tmp_path: Path) -> None:
    inotify = Inotify([tmp_path / "absent", tmp_path])
    (tmp_path / "file").write_text("")
    inotify.drain()
    with pytest.raises(BlockingIOError):
        os.read(inotify.fd, 4096)
    inotify.close()
