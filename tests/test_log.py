"""The daemon's log is one line a fact, in the format the operator chose."""

from __future__ import annotations

import asyncio
import errno
import io
import json

from agentsh_net.log import Unhandled, configure


def test_text_lines_name_the_program_and_any_level_above_info() -> None:
    stream = io.StringIO()
    logger = configure(form="text", level="info", stream=stream)
    logger.info("listening on %s", "127.0.0.1:8484")
    logger.warning("no headers")
    logger.debug("unseen")
    assert stream.getvalue().splitlines() == [
        "agentsh-net: listening on 127.0.0.1:8484",
        "agentsh-net: warning: no headers",
    ]


def test_json_lines_are_objects_with_a_time() -> None:
    stream = io.StringIO()
    configure(form="json", level="debug", stream=stream).debug("deep")
    entry = json.loads(stream.getvalue())
    assert entry["level"] == "debug"
    assert entry["message"] == "deep"
    assert entry["timestamp"].endswith("Z")


def test_an_exception_is_told_with_its_trace() -> None:
    stream = io.StringIO()
    logger = configure(form="text", level="info", stream=stream)
    try:
        raise ValueError("boom")
    except ValueError:
        logger.exception("apply failed")
    assert "ValueError: boom" in stream.getvalue()


def test_configuring_again_replaces_the_old_settings() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure(form="text", level="info", stream=first)
    configure(form="text", level="info", stream=second).info("once")
    assert first.getvalue() == ""
    assert second.getvalue() == "agentsh-net: once\n"


def test_a_lack_of_descriptors_that_asyncio_repeats_is_one_line_and_a_bug_each_time_a_trace() -> None:
    stream = io.StringIO()
    told = Unhandled(configure(form="text", level="info", stream=stream))
    loop = asyncio.new_event_loop()
    for _ in range(100):
        lack = OSError(errno.EMFILE, "Too many open files")
        told(loop, {"message": "socket.accept() out of system resource", "exception": lack})
    (line,) = stream.getvalue().splitlines()
    assert line.startswith("agentsh-net: error: Too many open files: nobody new is heard; raise the limit")
    for _ in range(2):
        told(loop, {"message": "a bug", "exception": ValueError("boom")})
    loop.close()
    assert stream.getvalue().count("ValueError: boom") == 2
