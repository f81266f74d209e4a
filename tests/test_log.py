"""The daemon's log is one line a fact, in the format the operator chose."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import re
import threading
from pathlib import Path

import pytest

from agentsh_net import log
from agentsh_net.log import Unhandled, configure


@pytest.fixture
def stream(tmp_path):
    with (tmp_path / "log").open("w") as file:
        yield file


def written(stream):
    log.flush()
    return Path(stream.name).read_text()


def test_text_lines_name_the_program_and_any_level_above_info(stream) -> None:
    logger = configure(form="text", level="info", stream=stream)
    logger.info("listening on %s", "127.0.0.1:8484")
    logger.warning("no headers")
    logger.debug("unseen")
    assert written(stream).splitlines() == [
        "agentsh-net: listening on 127.0.0.1:8484",
        "agentsh-net: warning: no headers",
    ]


def test_json_lines_are_objects_with_a_time(stream) -> None:
    configure(form="json", level="debug", stream=stream).debug("deep")
    entry = json.loads(written(stream))
    assert entry["level"] == "debug"
    assert entry["message"] == "deep"
    assert entry["timestamp"].endswith("Z")


def test_an_exception_is_told_with_its_trace(stream) -> None:
    logger = configure(form="text", level="info", stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logger.exception("apply failed")
    assert "ValueError: boom" in written(stream)


def test_configuring_again_replaces_the_old_settings(stream, tmp_path) -> None:
    with (tmp_path / "first").open("w") as first:
        configure(form="text", level="info", stream=first)
        configure(form="text", level="info", stream=stream).info("once")
        assert written(first) == ""
        assert written(stream) == "agentsh-net: once\n"


def test_nobody_waits_for_who_does_not_read_the_log_and_is_told_what_he_missed(monkeypatch) -> None:
    monkeypatch.setattr(log, "MAX_LINES", 10)
    monkeypatch.setattr(log, "LAST_WORDS", 0.1)
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    told: list[bytes] = []
    with open(ours, "rb") as reader:
        with open(theirs, "w") as stream:
            logger = configure(form="text", level="info", stream=stream)
            for number in range(20):
                logger.info("%d %s", number, "x" * 4000)
            log.flush()  # in vain, and not for long
            reading = threading.Thread(target=lambda: told.append(reader.read()))
            reading.start()
            monkeypatch.setattr(log, "LAST_WORDS", 60)
            log.flush()
        reading.join()
    (lost,) = re.findall(rb"warning: (\d+) lines of this log were not written: nobody read it", told[0])
    assert 8 <= int(lost) <= 10


def test_a_lack_of_descriptors_that_asyncio_repeats_is_one_line_and_a_bug_each_time_a_trace(stream) -> None:
    told = Unhandled(configure(form="text", level="info", stream=stream))
    loop = asyncio.new_event_loop()
    for _ in range(100):
        lack = OSError(errno.EMFILE, "Too many open files")
        told(loop, {"message": "socket.accept() out of system resource", "exception": lack})
    (line,) = written(stream).splitlines()
    assert line.startswith("agentsh-net: error: Too many open files: nobody new is heard; raise the limit")
    for _ in range(2):
        told(loop, {"message": "a bug", "exception": ValueError("boom")})
    loop.close()
    assert written(stream).count("ValueError: boom") == 2


def test_the_journal_is_told_the_priority_of_every_line(stream, monkeypatch: pytest.MonkeyPatch) -> None:
    found = os.fstat(stream.fileno())
    monkeypatch.setenv("JOURNAL_STREAM", f"{found.st_dev}:{found.st_ino}")
    logger = configure(form="text", level="debug", stream=stream)
    for say in (logger.debug, logger.info, logger.warning, logger.error):
        say("word")
    logger.error("two", exc_info=ValueError("bad"))
    lines = written(stream).splitlines()
    assert lines[:4] == ["<7>agentsh-net: debug: word", "<6>agentsh-net: word", "<4>agentsh-net: warning: word", "<3>agentsh-net: error: word"]  # fmt: skip
    assert len(lines) > 5 and all(line.startswith("<3>") for line in lines[4:])
    monkeypatch.setenv("JOURNAL_STREAM", "1:1")  # another's: ours was sent to a file
    configure(form="text", level="info", stream=stream).info("plain")
    assert written(stream).splitlines()[-1] == "agentsh-net: plain"
