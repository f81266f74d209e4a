"""Status shows what is in force, and fails when the configuration asked for more."""

import json

import pytest

from agentsh_net.cli.status import report, shortfall
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel import leftovers

GOOD = {
    "version": "0.1.0",
    "pid": 7,
    "started": "2025-01-31T12:00:00.0Z",
    "policy": {"mode": "enforce", "generation": 3, "digest": "sha256:0123456789abcdef", "path": "/etc/p.yaml"},
    "proxy": {"listen": "127.0.0.1:8484", "workers": [{"pid": 8}]},
    "store": {"path": "/var/e.db", "bytes": 2_500_000, "queued": 1, "lost": 0, "trouble": ""},
    "layers": [
        {"layer": "ebpf", "wanted": True, "in_force": True, "detail": "4 programs", "denied": 5, "tagged": 1, "lost": 0,
         "attachment": "links pinned in /sys/fs/bpf/agentsh-net/1/7"},
        {"layer": "nftables", "wanted": False, "in_force": False, "reason": "not in network.layers"},
    ],
    "servers": [{"server_id": "evil\x1b[2J", "type": "http", "action": "block", "addresses": ["10.0.0.1"]}],
}  # fmt: skip
UNKNOWN = {"server_id": "evil", "host": "mcp.evil", "denied": True, "addresses": []}
HEARD = {"name": "mcp.evil", "overheard": {"10.0.0.1": "stranger"}}
OFF = {
    "layer": "ebpf",
    "wanted": True,
    "in_force": False,
    "reason": "no BCC",
    "remedy": "apt install python3-bpfcc",
}


def test_what_is_in_force_is_shown_part_by_part(run, daemon):
    daemon(status=GOOD)
    result = run("status")
    assert result.exit_code == 0
    for part in (
        "0.1.0, pid 7",
        "enforce, generation 3, digest 0123456789ab, /etc/p.yaml",
        "127.0.0.1:8484, 1 worker\n",
        "/var/e.db, 2.5 MB, 1 queued, 0 lost",
        "evil<U+001B>[2J",
        "ebpf    links pinned in /sys/fs/bpf/agentsh-net/1/7\n",
    ):
        assert part in result.stdout
    rows = [line.split() for line in result.stdout.splitlines()]
    assert ["ebpf", "in", "force", "5", "1", "0", "4", "programs"] in rows
    assert ["nftables", "not", "wanted", "0", "0", "0", "not", "in", "network.layers"] in rows


def test_a_layer_that_is_off_is_told_with_its_remedy_and_fails(run, daemon):
    daemon(status={**GOOD, "layers": [OFF]})
    result = run("status")
    assert result.exit_code == 1
    assert "NOT IN FORCE: ebpf: no BCC (fix: apt install python3-bpfcc)" in result.stdout


def test_a_file_that_was_refused_is_told_beside_the_policy_that_stays(run, daemon):
    daemon(status={**GOOD, "policy": {**GOOD["policy"], "refused": ["bad: found the unknown key"]}})
    result = run("status")
    assert result.exit_code == 0
    assert "refused the file as it is now: bad: found the unknown key\n" in result.stdout


def test_json_is_one_object_with_the_shortfall(run, daemon):
    daemon(status={**GOOD, "layers": [OFF]})
    result = run("status", "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["shortfall"] == ["ebpf: no BCC (fix: apt install python3-bpfcc)"]
    assert told["pid"] == 7


@pytest.mark.parametrize(
    ("part", "missing"),
    [
        (
            {"store": {"trouble": "the disk is full", "remedy": "free space"}},
            ["store: the disk is full (fix: free space)"],
        ),
        ({"proxy": {"trouble": "no worker lives"}}, ["proxy: no worker lives"]),
        ({"servers": [{**UNKNOWN, "addresses": ["10.0.0.1"]}]}, []),
        ({"servers": [{**UNKNOWN, "denied": False}]}, []),
        ({"servers": [UNKNOWN], "layers": []}, []),
        ({"servers": [UNKNOWN], "resolver": {"names": [HEARD]}}, []),
        (
            {"servers": [UNKNOWN], "resolver": {"names": [HEARD], "problems": {"mcp.evil": "no such name"}}},
            ["server evil: denied, but no address of mcp.evil is known: no such name"],
        ),
        (
            {"servers": [UNKNOWN], "resolver": {"problems": {"mcp.evil": "no such name"}}},
            ["server evil: denied, but no address of mcp.evil is known: no such name"],
        ),
        ({}, []),
    ],
)
def test_trouble_of_a_part_is_a_shortfall_too(part, missing):
    assert shortfall({**GOOD, **part}) == missing


@pytest.mark.parametrize(
    ("discovery", "shown", "why"),
    [
        ({"ok": True}, "3", []),
        ({"ok": True, "unlisted": "prompts/list: no"}, "3", ["s: not all it offers can be listed: prompts/list: no"]),
        ({"ok": False, "error": "refused", "attempts": 7}, "?", ["s: its tools cannot be listed: refused (7 tries, and it is tried again)"]),
        ({"ok": False, "error": "\x1bx"}, "?", ["s: its tools cannot be listed: <U+001B>x (1 try, and it is tried again)"]),
        (None, "?", []),
    ],
)  # fmt: skip
def test_a_server_that_could_not_be_asked_has_no_number_of_tools_and_the_reason_is_told(
    run, daemon, discovery, shown, why
):
    daemon(
        status={
            **GOOD,
            "servers": [
                {"server_id": "s", "type": "http", "action": "allow", "tools": 3, "discovery": discovery}
            ],
        }
    )
    lines = run("status").stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("SERVER"))
    assert lines[at + 1].split() == ["s", "http", "allow", shown, "-"]
    assert lines[at + 2 :] == why


@pytest.mark.parametrize(
    ("tools", "action", "shown", "told"),
    [
        (2, "allow", "2", []),
        (0, "allow", "?", ["s: tools are known once a client lists them, under the shim or behind the gateway"]),
        (0, "block", "?", []),
    ],
)  # fmt: skip
def test_a_stdio_server_has_a_number_of_tools_once_a_client_listed_them(
    run, daemon, tools, action, shown, told
):
    server = {"server_id": "s", "type": "stdio", "action": action, "tools": tools, "discovery": None}
    daemon(status={**GOOD, "servers": [server]})
    lines = run("status").stdout.splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("SERVER"))
    assert lines[at + 1].split() == ["s", "stdio", action, shown, "-"]
    assert lines[at + 2 :] == told


def test_what_waits_and_what_was_noted_is_shown(run, daemon):
    policy = {**GOOD["policy"], "pending": ["proxy.port"]}
    daemon(status={**GOOD, "policy": policy, "notes": ["~/.cursor/mcp.json: not readable"]})
    shown = run("status").stdout
    assert "proxy.port waits for the next start" in shown
    assert "~/.cursor/mcp.json: not readable" in shown


def test_a_daemon_that_says_little_is_still_shown(run, daemon):
    daemon(status={})
    assert run("status").exit_code == 0


NAMES = [
    {"name": "evil.test", "addresses": ["10.0.0.1"], "overheard": {"10.0.0.2": "resolver"}, "age": 12.3, "failure": "AAAA: SERVFAIL", "failures": 2},
    {"name": "new.test", "addresses": [], "overheard": {}, "age": None, "failure": "", "failures": 0},
]  # fmt: skip


def test_names_are_shown_with_their_addresses_their_age_and_their_last_failure(run, daemon):
    daemon(status={**GOOD, "resolver": {"names": NAMES}})
    lines = [" ".join(line.split()) for line in run("status").stdout.splitlines()]
    assert "NAME ANSWERED ADDRESSES LAST FAILURE" in lines
    assert "evil.test 12s ago 10.0.0.1, 10.0.0.2 (overheard) AAAA: SERVFAIL (2 in a row)" in lines
    assert "new.test never - -" in lines


def test_snooping_is_shown_with_its_gap(run, daemon):
    gap = {"count": 3, "p50": 0.004, "p99": 0.0102, "max": 0.0102}
    snoop = {"wanted": True, "in_force": True, "seen": 9, "lost": 1, "changes": 3, "gap": gap}
    daemon(status={**GOOD, "snoop": snoop})
    shown = "dns     answers snooped: 9 seen, 1 lost, 3 brought an address, in force after 4.0 ms (p99 10.2)"
    assert shown in run("status").stdout


def test_snooping_that_is_off_is_missed(run, daemon):
    off = {"wanted": True, "in_force": False, "reason": "no packet socket", "remedy": "run as root"}
    daemon(status={**GOOD, "snoop": off})
    result = run("status")
    assert result.exit_code == 1
    assert "NOT IN FORCE: DNS snooping: no packet socket (fix: run as root)" in result.stdout


def test_the_stub_is_shown_with_the_way_to_use_it_and_missed_when_it_does_not_answer(run, daemon):
    held = {"count": 2, "p50": 0.02, "p99": 0.0815, "max": 0.0815}
    stub = {
        "wanted": True,
        "in_force": True,
        "listen": "127.0.0.55",
        "port": 53,
        "upstream": ["10.0.0.53"],
        "held": held,
    }
    daemon(status={**GOOD, "stub": stub})
    assert (
        "dns     stub asks 10.0.0.53; used by who has `nameserver 127.0.0.55` in resolv.conf; 2 answers held for 20.0 ms (p99 81.5)"
        in run("status").stdout
    )
    off = {"wanted": True, "in_force": False, "reason": "starting", "remedy": "see the log"}
    assert shortfall({"stub": off}) == ["DNS stub: starting (fix: see the log)"]


def test_what_is_done_with_requests_and_where_the_numbers_are_is_said(run, daemon):
    proxy = {**GOOD["proxy"], "dlp": "tokenize", "stores": True}
    daemon(status={**GOOD, "proxy": proxy, "metrics": {"listen": "http://127.0.0.1:9484"}})
    told = run("status").stdout
    assert "127.0.0.1:8484, 1 worker, DLP tokenize, requests and answers stored\n" in told
    assert "metrics http://127.0.0.1:9484\n" in told


def test_on_a_terminal_long_lines_are_wrapped_between_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    told = {"notes": ["word " * 20]}
    note = next(line for line in report(told) if line.startswith("note"))
    assert max(map(len, note.splitlines())) <= 40
    assert [line[:8] for line in note.splitlines()[1:]] == [" " * 8] * (len(note.splitlines()) - 1)
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert "note    " + "word " * 20 in list(report(told))


def test_what_a_daemon_that_is_gone_left_in_force_is_told_with_both_ways_on(run, monkeypatch):
    monkeypatch.setattr(leftovers, "leftovers", lambda: ["eBPF program 7 at /sys/fs/cgroup", "nftables table inet agentsh_net"])  # fmt: skip
    result = run("status")
    assert (result.exit_code, result.stdout) == (4, "")
    assert "in force without it: eBPF program 7 at /sys/fs/cgroup, nftables table inet agentsh_net" in result.stderr  # fmt: skip
    assert "agentsh-net run" in result.stderr and "down --force" in result.stderr


def test_pins_alone_are_not_told_as_in_force(run, monkeypatch):
    monkeypatch.setattr(leftovers, "leftovers", lambda: ["pins in /sys/fs/bpf/agentsh-net/7"])
    result = run("status")
    assert result.exit_code == 4
    assert "left of it, which refuses nothing: pins in /sys/fs/bpf/agentsh-net/7" in result.stderr
    assert "in force" not in result.stderr


@pytest.mark.parametrize("left", [[], KernelError("no", layer="ebpf", remedy="run as root")])
def test_where_nothing_was_left_or_it_cannot_be_seen_the_daemons_absence_is_told_alone(
    run, monkeypatch, left
):
    def leftovers_() -> list[str]:
        if isinstance(left, KernelError):
            raise left
        return left

    monkeypatch.setattr(leftovers, "leftovers", leftovers_)
    result = run("status")
    assert result.exit_code == 4
    assert result.stderr.startswith("error: no daemon answers at ") and "in force" not in result.stderr
