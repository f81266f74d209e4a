"""Doctor tells of each layer what is there and what mends it, and fails only for what was asked for."""

import json
import os
import socket as sockets
import tempfile

import pytest

from agentsh_net.cli import doctor
from agentsh_net.core.configuration.settings import Config, Proxy, Store
from agentsh_net.kernel import leftovers, probe
from agentsh_net.kernel.cgroups import cgroup
from agentsh_net.kernel.nft import nflog
from agentsh_net.kernel.probe import Probe
from agentsh_net.store import connect

FINE = [
    Probe("ebpf", True, "cgroup v2"),
    Probe("nftables", True, "nf_tables"),
    Probe("sweep", True, "SOCK_DESTROY"),
]
NO_BCC = Probe(
    "ebpf", False, "python3-bpfcc", "python3-bpfcc is not installed", "sudo apt install python3-bpfcc"
)


@pytest.fixture(autouse=True)
def machine(monkeypatch, tmp_path):
    """A machine where everything is there: the probes, a free port, a place for the store."""
    found = list(FINE)
    monkeypatch.setattr(probe, "probe", lambda bpf_loader: found)
    config = Config(proxy=Proxy(port=0), store=Store(path=str(tmp_path / "events.db")))
    monkeypatch.setattr(doctor, "_default", lambda: config)
    return found


def checks(result):
    return {row["layer"]: row for row in json.loads(result.stdout)}


def test_a_machine_that_has_everything_is_fine(run):
    result = run("doctor", "--json")
    assert result.exit_code == 0
    assert {"python", "user", "ebpf", "nftables", "sweep", "store", "proxy"} == set(checks(result))
    assert all(row["usable"] for row in checks(result).values())


def test_a_user_who_is_in_no_file_is_named_by_the_id(run, monkeypatch):
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    for asked in ("getuid", "geteuid"):
        monkeypatch.setattr(os, asked, lambda: 4_000_000_001)
    assert checks(run("doctor", "--json"))["user"]["detail"] == "user id 4000000001"


def test_what_is_missing_is_shown_with_the_command_that_mends_it(run, machine):
    machine[0] = NO_BCC
    result = run("doctor")
    assert result.exit_code == 3
    [line] = [line for line in result.stdout.splitlines() if line.startswith("ebpf")]
    assert line.split(maxsplit=2)[1] == "MISSING"
    assert "sudo apt install python3-bpfcc" in line


def test_a_store_that_is_there_and_may_not_be_written_is_no_usable_one(run, monkeypatch, tmp_path):
    connect.open_writer(tmp_path / "events.db").close()
    assert checks(run("doctor", "--json"))["store"]["usable"]
    may = os.access
    monkeypatch.setattr(os, "access", lambda p, mode, **more: not mode & os.W_OK and may(p, mode, **more))
    assert checks(run("doctor", "--json"))["store"]["reason"] == f"{tmp_path} may not be written"


def test_a_layer_the_file_does_not_ask_for_may_be_missing(run, machine, tmp_path):
    machine[0] = NO_BCC
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\nnetwork: {{layers: [nftables]}}\nproxy: {{mode: disabled}}\nstore: {{path: {tmp_path}/e.db}}\n")  # fmt: skip
    result = run("doctor", "--config", policy, "--json")
    assert result.exit_code == 0, result.output
    assert not checks(result)["ebpf"]["wanted"]
    assert "proxy" not in checks(result)


@pytest.mark.parametrize(
    ("reader", "owners", "told"),
    [(None, [], ""), (7, [7], ""), (8, [7], "pid 8"), (0, [], "a process that cannot be seen")],
)
def test_a_log_group_that_somebody_else_reads_is_told_with_its_reader(run, monkeypatch, reader, owners, told):
    monkeypatch.setattr(nflog, "reader_of", lambda _group: reader)
    monkeypatch.setattr(leftovers, "owners", lambda: owners)
    result = run("doctor", "--json")
    assert result.exit_code == 0
    row = checks(result).get("limits", {"reason": ""})
    assert row["reason"] == (
        told and f"the log group 4848, which {told} reads: what nftables refuses is refused, and not told"
    )


def test_without_proc_no_layer_can_be_had_and_it_says_what_to_mount(run, monkeypatch, tmp_path):
    monkeypatch.setattr(cgroup, "MOUNTINFO", str(tmp_path / "mountinfo"))
    result = run("doctor", "--json")
    assert result.exit_code == 3
    found = checks(result)
    assert [found[layer]["remedy"] for layer in ("ebpf", "nftables")] == ["mount -t proc proc /proc"] * 2


def test_a_broken_file_is_a_usage_error(run, tmp_path):
    (tmp_path / "bad.yaml").write_text("nonsense: 1")
    assert run("doctor", "--config", tmp_path / "bad.yaml").exit_code == 2


def test_a_store_that_is_no_database_is_told(run, tmp_path):
    (tmp_path / "events.db").write_text("not a database" * 100)
    result = run("doctor", "--json")
    assert result.exit_code == 3
    assert "mv" in checks(result)["store"]["remedy"]


def test_a_store_that_exists_is_measured(run, tmp_path):
    from agentsh_net.store.connect import open_writer

    open_writer(tmp_path / "events.db").close()
    assert "MB" in checks(run("doctor", "--json"))["store"]["detail"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to become a user without rights")
@pytest.mark.parametrize("mode", [0o755, 0o700], ids=["seen", "unseen"])
def test_a_place_that_may_not_be_written_is_told(mode):
    with tempfile.TemporaryDirectory() as home:
        os.chmod(home, mode)
        os.seteuid(65534)
        try:
            check = doctor._store(doctor.Path(home, "state/events.db"))
        finally:
            os.seteuid(0)
    assert (check["usable"], check["reason"]) == (False, f"{home} may not be written")


@pytest.fixture
def taken(monkeypatch):
    with sockets.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        config = doctor._default()
        monkeypatch.setattr(doctor, "_default", lambda: Config(proxy=Proxy(port=port), store=config.store))
        yield port


def test_a_port_in_use_is_told(run, taken):
    result = run("doctor", "--json")
    assert result.exit_code == 3
    assert f"ss -ltnp sport = :{taken}" in checks(result)["proxy"]["remedy"]


def test_a_port_in_use_by_the_daemon_is_fine(run, daemon, taken):
    daemon(status={})
    result = run("doctor", "--json")
    assert result.exit_code == 0
    assert "the daemon runs" in checks(result)["proxy"]["detail"]


def test_every_port_that_a_policy_asks_for_is_looked_at(run, taken, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        f"version: 1\nproxy: {{mode: disabled}}\nstore: {{path: {tmp_path}/its.db}}\nnetwork: {{mode: off}}\n"
        f"gateway: {{enabled: true, port: {taken}}}\nmetrics: {{listen: 127.0.0.1, port: 0}}\n"
    )
    result = run("doctor", "--config", str(policy), "--json")
    assert result.exit_code == 3
    found = checks(result)
    assert found["gateway"]["remedy"] == f"set gateway.port, or see: ss -ltnp sport = :{taken}"
    assert (found["metrics"]["usable"], "proxy" in found) == (True, False)


def test_without_a_file_what_the_running_daemon_follows_is_checked(run, daemon, tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text(f"version: 1\nproxy: {{mode: disabled}}\nstore: {{path: {tmp_path}/its.db}}\n")
    here = daemon(status={"pid": 7, "policy": {"path": str(policy)}})
    found = checks(run("doctor", "--json"))
    assert found["policy"]["detail"] == f"{policy}, which the daemon follows (pid 7)"
    assert found["store"]["detail"] == f"{tmp_path}/its.db will be made"
    assert "proxy" not in found
    policy.write_text("version: 1\nproxy: {listen: '${NOT_SET_HERE}'}\n")
    result = run("doctor", "--json")
    assert "the variable NOT_SET_HERE" in checks(result)["policy"]["reason"]
    assert checks(result)["policy"]["remedy"] == f"sudo agentsh-net doctor --config {policy}"
    assert checks(result)["store"]["detail"] == f"{tmp_path}/events.db will be made"
    here.answers = {"status": {"pid": 7, "policy": {"path": None}}}
    assert "policy" not in checks(run("doctor", "--json"))
