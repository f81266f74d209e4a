"""The daemon's log is one line a fact, in the format the operator chose."""

from __future__ import annotations

import io
import json

from agentsh_net.log import configure


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
