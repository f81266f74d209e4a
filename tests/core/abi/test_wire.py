"""Python and C agree on every byte of the ABI, and a record that is not of this ABI is refused."""

from __future__ import annotations

import shutil
import subprocess
from ipaddress import IPv6Address
from pathlib import Path

import pytest

from agentsh_net.core.abi import sieve, wire
from agentsh_net.core.configuration.egress import MAX_PREFIXES
from agentsh_net.core.errors import KernelError
from agentsh_net.core.network.plane import Endpoint, Fate, Finding, Name, Rule

HEADER = Path(__file__).parents[3] / "bpf" / "agentsh.h"

# Field -> (offset, size), as the struct formats of core.abi.wire have them.
LAYOUTS = {
    "agentsh_key": {"address": (0, 16), "port": (16, 2)},
    "agentsh_rule": {"fate": (0, 4)},
    "agentsh_config": {"generation": (0, 4), "switches": (4, 4), "sessions": (8, 8), "workers": (16, 8)},
    "agentsh_name": {"name": (0, 256), "port": (256, 2)},
    "agentsh_prefix": {"bits": (0, 4), "port": (4, 2), "address": (8, 16)},
    "agentsh_stream": {
        "start": (0, 4),
        "next": (4, 4),
        "verdict": (34, 1),
        "marks": (39, 1),
        "name": (40, 260),
    },
    "agentsh_hello_record": {
        "record": (0, 96),
        "source": (96, 16),
        "source_port": (112, 2),
        "finding": (114, 2),
        "name": (120, 256),
    },
    "agentsh_maker": {"pid": (0, 4), "tid": (4, 4), "comm": (8, 16)},
    "agentsh_record": {
        "time_ns": (0, 8),
        "cgroup_id": (8, 8),
        "netns_cookie": (16, 8),
        "socket_cookie": (24, 8),
        "pid": (32, 4),
        "tid": (36, 4),
        "uid": (40, 4),
        "generation": (44, 4),
        "address": (48, 16),
        "port": (64, 2),
        "protocol": (66, 2),
        "family": (68, 1),
        "fate": (69, 1),
        "hook": (70, 1),
        "flags": (71, 1),
        "comm": (72, 16),
        "session": (88, 8),
    },
}
SIZES = {
    "agentsh_key": wire.KEY.size,
    "agentsh_rule": wire.RULE.size,
    "agentsh_config": wire.CONFIG.size,
    "agentsh_name": wire.NAME.size,
    "agentsh_prefix": wire.PREFIX.size,
    "agentsh_stream": wire.STREAM_SIZE,
    "agentsh_hello_record": wire.RECORD.size + wire.HELLO.size,
    "agentsh_maker": 24,
    "agentsh_record": wire.RECORD.size,
}
CONSTANTS = {
    "AGENTSH_MAX_RULES": wire.MAX_RULES,
    "AGENTSH_RING_BYTES": wire.RING_BYTES,
    "AGENTSH_DENY": wire.FATES[Fate.DENY],
    "AGENTSH_TAG": wire.FATES[Fate.TAG],
    "AGENTSH_SNI": wire.FATES[Fate.SNI],
    "AGENTSH_SNI_OPEN": wire.FATES[Fate.SNI_OPEN],
    "AGENTSH_MAX_NAMES": wire.MAX_NAMES,
    "AGENTSH_NAME_BYTES": wire.NAME_BYTES,
    "AGENTSH_READING": wire.READING,
    "AGENTSH_PASSED": wire.PASSED,
    "AGENTSH_REFUSED": wire.REFUSED,
    **{f"AGENTSH_{finding.name}": number for finding, number in wire.FINDINGS.items()},
    "AGENTSH_DENIED": wire.DENIED,
    "AGENTSH_TAGGED": wire.TAGGED,
    "AGENTSH_LOST": wire.LOST,
    "AGENTSH_LAST": wire.LAST,
    "AGENTSH_COUNTERS": wire.COUNTERS,
    "AGENTSH_OBSERVED": wire.OBSERVED,
    "AGENTSH_UNLESS_OURS": wire.UNLESS_OURS,
    "AGENTSH_ENFORCE": wire.ENFORCE,
    "AGENTSH_SESSIONS_ONLY": wire.SESSIONS_ONLY,
    "AGENTSH_EGRESS_TELL": wire.EGRESS_TELL,
    "AGENTSH_EGRESS_REFUSE": wire.EGRESS_REFUSE,
    "AGENTSH_DECLARED": wire.DECLARED,
    "AGENTSH_UNDECLARED": wire.UNDECLARED,
    "AGENTSH_NONE": wire.FATES[Fate.ALLOW],
    "AGENTSH_MAX_PREFIXES": MAX_PREFIXES,
    **{f"AGENTSH_{hook.upper()}": number for number, hook in wire.HOOKS.items()},
    "AGENTSH_SIEVE_BITS": sieve.BITS,
    "AGENTSH_SIEVE_WORDS": sieve.WORDS,
    "AGENTSH_SIEVE_DENY": sieve.SET[Fate.DENY],
    "AGENTSH_SIEVE_TAG": sieve.SET[Fate.TAG],
}


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler here: sudo apt install gcc")
def test_the_compiler_sees_the_layout_that_python_packs(tmp_path: Path) -> None:
    lines = [
        f'printf("{struct}.{field} %zu %zu\\n", offsetof(struct {struct}, {field}), sizeof((({struct} *)0)->{field}));'
        for struct, fields in LAYOUTS.items()
        for field in fields
    ]
    lines += [f'printf("{struct} %zu\\n", sizeof({struct}));' for struct in LAYOUTS]
    lines += [f'printf("{name} %d\\n", (int){name});' for name in CONSTANTS]
    typedefs = "\n".join(f"typedef struct {struct} {struct};" for struct in LAYOUTS)
    source = tmp_path / "abi.c"
    body = "\n".join(lines)
    source.write_text(
        f'#include <stddef.h>\n#include <stdio.h>\n#include <linux/types.h>\n#include "{HEADER}"\n'
        f"{typedefs}\nint main(void) {{\n{body}\nreturn 0; }}\n"
    )
    subprocess.run(["cc", "-Wall", "-Werror", "-Wpadded", "-o", tmp_path / "abi", source], check=True)
    said = subprocess.run([tmp_path / "abi"], check=True, capture_output=True, text=True).stdout
    wanted = [
        f"{struct}.{field} {offset} {size}"
        for struct, fields in LAYOUTS.items()
        for field, (offset, size) in fields.items()
    ]
    wanted += [f"{struct} {size}" for struct, size in SIZES.items()]
    wanted += [f"{name} {value}" for name, value in CONSTANTS.items()]
    assert said.splitlines() == wanted


def packed(**changes: object) -> bytes:
    fields = {
        "time_ns": 1,
        "cgroup_id": 2,
        "netns_cookie": 3,
        "socket_cookie": 4,
        "pid": 5,
        "tid": 6,
        "uid": 7,
        "generation": 8,
        "address": IPv6Address("::ffff:10.0.0.1").packed,
        "port": b"\x01\xbb",
        "protocol": 262,
        "family": 10,
        "fate": 1,
        "hook": 2,
        "flags": 0,
        "comm": b"curl\0rubbish\0\0\0\0",
        "session": 9,
    }
    assert list(fields) == list(LAYOUTS["agentsh_record"])
    return wire.RECORD.pack(*(fields | changes).values())


def test_python_packs_each_field_where_the_layout_says() -> None:
    record = packed()
    for field, value in {"pid": 5, "generation": 8, "protocol": 262, "hook": 2}.items():
        offset, size = LAYOUTS["agentsh_record"][field]
        assert int.from_bytes(record[offset : offset + size], "little") == value


def test_a_record_says_who_went_where_and_what_became_of_it() -> None:
    assert wire.decode(packed()) == wire.Record(
        boot_ns=1,
        cgroup_id=2,
        netns_cookie=3,
        socket_cookie=4,
        pid=5,
        tid=6,
        uid=7,
        generation=8,
        address=IPv6Address("::ffff:10.0.0.1"),
        port=443,
        protocol=262,
        family=10,
        fate=Fate.DENY,
        hook="connect6",
        observed=False,
        comm="curl",
        session=9,
    )


def test_a_denial_that_was_let_pass_says_so() -> None:
    assert wire.decode(packed(flags=wire.OBSERVED)).observed


def test_a_name_that_is_not_utf8_is_still_a_name() -> None:
    assert wire.decode(packed(comm=b"\xff" * 16)).comm == "\ufffd" * 16


@pytest.mark.parametrize(
    "data",
    [b"", packed()[:-1], packed(fate=0), packed(fate=3), packed(hook=0), packed(hook=9)],
    ids=["empty", "cut", "no fate", "unknown fate", "no hook", "unknown hook"],
)
def test_a_record_of_another_abi_is_refused(data: bytes) -> None:
    with pytest.raises(KernelError):
        wire.decode(data)


@pytest.mark.parametrize(
    "endpoint", [Endpoint(IPv6Address("::ffff:1.2.3.4"), 443), Endpoint(IPv6Address("fd00::1"))]
)
def test_a_key_reads_back_as_the_endpoint_it_was_made_from(endpoint: Endpoint) -> None:
    assert wire.decode_key(wire.encode_key(endpoint)) == endpoint


def test_a_key_has_its_port_in_network_byte_order() -> None:
    key = wire.encode_key(Endpoint(IPv6Address("::ffff:1.2.3.4"), 443))
    assert key == bytes(10) + b"\xff\xff\x01\x02\x03\x04" + b"\x01\xbb" + bytes(2)


def test_a_rule_that_does_not_concern_the_proxy_says_so_beside_its_fate() -> None:
    assert wire.encode_rule(Rule(Fate.DENY, ("evil",))) == b"\x01\0\0\0"
    assert wire.encode_rule(Rule(Fate.DENY, (), providers=("openai",))) == b"\x01\x01\0\0"


def test_the_switches_are_apart_and_the_cgroups_stand_behind_them() -> None:
    own = wire.OwnIds(sessions=7, workers=8)
    value = wire.encode_config(generation=5, enforce=False, sessions_only=True, own=own)
    assert wire.CONFIG.unpack(value) == (5, wire.SESSIONS_ONLY, 7, 8)


def packed_hello(**changes: object) -> bytes:
    fields = {
        "source": IPv6Address("::ffff:10.0.0.9").packed,
        "source_port": b"\x9c\x40",
        "finding": 1,
        "reserved": 0,
        "name": b"evil.test",
    }
    return packed(hook=6) + wire.HELLO.pack(*(fields | changes).values())


def test_a_record_of_a_client_hello_tells_the_name_and_whose_connection_it_is() -> None:
    record = wire.decode(packed_hello())
    assert (record.hook, record.finding, record.sni) == ("hello", Finding.NAMED, "evil.test")
    assert record.source == (IPv6Address("::ffff:10.0.0.9"), 40000)
    assert wire.decode(packed()).source is None


@pytest.mark.parametrize(
    "data",
    [packed(hook=6), packed_hello()[:-1], packed_hello(finding=0), packed_hello(finding=99)],
    ids=["no hello", "cut", "no finding", "unknown finding"],
)
def test_a_record_of_a_client_hello_that_is_of_another_abi_is_refused(data: bytes) -> None:
    with pytest.raises(KernelError):
        wire.decode(data)


def test_a_name_is_a_key_of_bytes_with_its_port_as_the_wire_has_it() -> None:
    key = wire.encode_name(Name("evil.test", 8443))
    assert (key[:10], key[10:256], key[256:]) == (b"evil.test\0", bytes(246), b"\x20\xfb\0\0")


def test_a_stream_tells_its_verdict_and_its_name() -> None:
    value = wire.STREAM.pack(*range(10), wire.PASSED, *range(5)) + wire.encode_name(Name("good.test"))
    assert wire.decode_stream(value) == wire.Stream(wire.PASSED, "good.test")


@pytest.mark.parametrize("size", [0, wire.STREAM_SIZE - 1, wire.STREAM_SIZE + 1])
def test_a_socket_without_a_stream_of_this_layout_has_none(size: int) -> None:
    assert wire.decode_stream(bytes(size)) is None


def test_the_fate_of_a_name_is_a_number_of_four_bytes() -> None:
    assert [wire.encode_fate(fate) for fate in (Fate.DENY, Fate.TAG)] == [b"\x01\0\0\0", b"\x02\0\0\0"]


def test_every_switch_is_off_unless_it_is_asked_for() -> None:
    assert wire.CONFIG.unpack(wire.encode_config(generation=2**32 + 5, enforce=True)) == (
        5,
        wire.ENFORCE,
        0,
        0,
    )
    assert wire.CONFIG.unpack(wire.encode_config(generation=5, enforce=False))[1] == 0
