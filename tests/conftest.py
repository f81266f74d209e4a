"""Every test run says what it could not run, and why; kernel tests need root and their kernel."""

from __future__ import annotations

import os
import re
import signal

import pytest
from hypothesis import settings

# A law holds however busy the machine is: what is slow is a benchmark's business.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# What tests, and the programs they start, have of the environment; proxies, keys, colours and languages are of who starts them.
INHERITED = re.compile(
    r"PATH|HOME|USER|TMPDIR|TZ|PYTHON\w+|PYTEST_\w+|VIRTUAL_ENV|XDG_CACHE_HOME|NODE_EXTRA_CA_CERTS|npm_config_\w+|COV\w+|LD_\w+|AGENTSH_NET_(VM|SOAK|VENV)\w*"
)

TEXT = re.compile(rb"[\t\r\n -~]*")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers by which an emulated machine leaves tests out, and be the same wherever it is started."""
    # Under nohup, or in the background of a script, some are ignored, and would be by every program that a test starts.
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for name in [name for name in os.environ if not INHERITED.fullmatch(name)]:
        del os.environ[name]
    os.environ["LANG"] = "C.UTF-8"
    os.umask(0o022)
    config.addinivalue_line("markers", "bcc: has BCC compile the probes, which takes minutes under emulation")
    config.addinivalue_line("markers", "alone: has a guest to itself (./dev vm)")
    config.addinivalue_line(
        "markers",
        "slow: takes minutes under emulation, and tells nothing of a kernel that a quicker test does not",
    )


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Call packed bytes by their length: gzip writes the time into them, and all workers of a run must name a test alike."""
    if isinstance(val, bytes) and len(val) > 16 and not TEXT.fullmatch(val):
        return f"{argname}: {len(val)} bytes"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip kernel tests with a printed reason where the user cannot make namespaces."""
    if os.geteuid() == 0:
        return
    skip = pytest.mark.skip(
        reason="kernel tests need root (sudo ./dev test): they make namespaces, cgroups and rules of their own"
    )
    for item in items:
        if item.get_closest_marker("kernel"):
            item.add_marker(skip)
