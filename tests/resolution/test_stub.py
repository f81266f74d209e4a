"""Only what is read whole and in force goes out, the stub's process is replaced when it dies, and status tells when it does not answer."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dns.message
import dns.rrset
import pytest

from agentsh_net.core.audit.events import Event
from agentsh_net.core.configuration.settings import Resolve
from agentsh_net.core.errors import ConfigError
from agentsh_net.core.links.stub_link import MAX_DATAGRAM, Decided, Held, decode, encode
from agentsh_net.core.network.dns_message import Ascribed, wire_name
from agentsh_net.kernel.names.name_servers import NameServers
from agentsh_net.resolution import stub
from agentsh_net.resolution.stub import DnsStub, bind

EVIL = wire_name("evil.test")
ANYWHERE = Resolve(stub=True, stub_listen="127.0.0.1", stub_port=0)


def answer(name: str, *addresses: str) -> bytes:
    made = dns.message.make_response(dns.message.make_query(name, "A"))
    made.answer += [dns.rrset.from_text(f"{name}.", 60, "IN", "A", *addresses)] if addresses else []
    return made.to_wire()


class Resolver:
    room = True

    def __init__(self) -> None:
        self.said: list[str] = []

    def wire_names(self) -> set[bytes]:
        return {EVIL}

    def released(self, said: Mapping[bytes, Ascribed]) -> bool:
        self.said += [str(a) for given in said.values() for a in given.addresses]
        return self.room


class Stage:
    def __init__(self, tmp_path: Path, *, confirmed: bool = True) -> None:
        conf = tmp_path / "resolv.conf"
        conf.write_text("nameserver 10.0.0.53\nnameserver 127.0.0.1\n")
        self.resolver, self.events, self.confirmed = Resolver(), [], confirmed
        self.order: list[str] = []
        servers = NameServers((), "127.0.0.1", files=[conf])
        emit = self.events.append
        self.stub = DnsStub(ANYWHERE, servers, self.resolver, self.readdress, emit, logging.getLogger("t"))  # type: ignore[arg-type]

    events: list[Event]

    def readdress(self) -> asyncio.Future[bool]:
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_later(0.01, done.set_result, self.confirmed)
        return done


def decided(stage: Stage, message: bytes) -> bool:
    async def script() -> bool:
        verdict = stage.stub.decide(message)
        return verdict if isinstance(verdict, bool) else await verdict

    return asyncio.run(script())


def test_an_answer_with_a_watched_name_goes_out_once_the_planes_confirmed_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert decided(stage, answer("evil.test", "10.0.0.1", "10.0.0.2"))
    assert sorted(stage.resolver.said) == ["10.0.0.1", "10.0.0.2"]
    assert not decided(Stage(tmp_path, confirmed=False), answer("evil.test", "10.0.0.1"))


def test_an_answer_of_which_not_everything_finds_room_does_not_go_out(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.resolver.room = False
    assert not decided(stage, answer("evil.test", "10.0.0.1"))


def test_other_answers_go_out_at_once_but_not_what_cannot_be_read(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    assert stage.stub.decide(answer("other.test", "10.0.0.1")) is True
    assert stage.stub.decide(answer("other.test", "10.0.0.1")[:-1]) is False
    assert stage.stub.decide(answer("evil.test", "10.0.0.1")[:-1]) is False
    assert stage.stub.decide(b"nonsense") is False
    assert stage.resolver.said == []


@pytest.mark.parametrize(("confirmed", "last"), [(True, b"nonsense"), (False, b"")])
def test_what_is_decided_is_told_to_the_process_until_one_of_both_ends_it(
    tmp_path: Path, confirmed: bool, last: bytes
) -> None:
    stage = Stage(tmp_path, confirmed=confirmed)

    async def script() -> list[tuple[int, bool]]:
        loop = asyncio.get_running_loop()
        stage.stub._link, process = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (stage.stub._link, process):
            end.setblocking(False)
        loop.add_reader(stage.stub._link, stage.stub._read)
        async with asyncio.timeout(60):
            for number, message in enumerate(
                (answer("other.test"), b"nonsense", answer("evil.test", "10.0.0.1"))
            ):
                process.send(encode(Held(number, message)))
            told = [decode(await loop.sock_recv(process, MAX_DATAGRAM)) for _ in range(3)]
            if last:
                process.send(last)
            else:
                process.shutdown(socket.SHUT_WR)
            assert await loop.sock_recv(process, 1) == b""
        process.close()
        stage.stub._tell(9, release=True)  # decided too late: nobody is there
        return [(each.number, each.release) for each in told if isinstance(each, Decided)]

    assert asyncio.run(script()) == [(0, True), (1, False), (2, confirmed)]
    status = stage.stub.status()
    assert (status["refused"], status["held"]["count"]) == (1 if confirmed else 2, 1)


def test_a_taken_port_is_the_operators_problem() -> None:
    udp, tcp = bind(ANYWHERE)
    with udp, tcp:
        assert udp.getsockname() == tcp.getsockname()
        with pytest.raises(ConfigError) as told:
            bind(Resolve(stub=True, stub_listen="127.0.0.1", stub_port=udp.getsockname()[1]))
    assert "network.resolve.stub_listen" in str(told.value)


def test_a_process_that_dies_is_replaced_and_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub, "BACKOFF", (0.01, 0.01))
    started: list[int] = []
    spawn = asyncio.create_subprocess_exec

    async def noted(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await spawn(*arguments, **options)
        started.append(process.pid)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)

    async def script() -> list[dict[str, Any]]:
        stage = Stage(tmp_path)
        task = asyncio.create_task(stage.stub.run())
        await stage.stub.serving()
        found = [stage.stub.status()]
        os.kill(started[0], signal.SIGKILL)
        async with asyncio.timeout(60):
            while len(started) < 2:
                await asyncio.sleep(0.01)
            found.append(stage.stub.status())
        await stage.stub.serving()
        found.append(stage.stub.status())
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert [e.state for e in stage.events] == ["in force", "not in force", "in force"]  # type: ignore[attr-defined]
        with pytest.raises(ProcessLookupError):
            os.kill(started[1], 0)
        return found

    first, between, last = asyncio.run(script())
    assert (first["in_force"], first["upstream"], first["listen"]) == (True, ["10.0.0.53"], "127.0.0.1")
    assert (between["in_force"], between["reason"]) == (
        False,
        f"its process ended with status -{int(signal.SIGKILL)}",
    )
    assert last["in_force"]


def test_where_the_host_lets_no_process_start_it_is_told_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stub, "BACKOFF", (0.01, 0.01))
    spawn = asyncio.create_subprocess_exec

    async def refused(*_: Any, **__: Any) -> asyncio.subprocess.Process:
        monkeypatch.setattr(asyncio, "create_subprocess_exec", spawn)
        raise BlockingIOError(11, "no process left")

    monkeypatch.setattr(asyncio, "create_subprocess_exec", refused)

    async def script() -> None:
        stage = Stage(tmp_path)
        task = asyncio.create_task(stage.stub.run())
        await stage.stub.serving()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert [(e.state, e.reason[:34]) for e in stage.events] == [  # type: ignore[attr-defined]
            ("not in force", "its process cannot be started: [Er"),
            ("in force", "answers are held until they are in"),
        ]

    asyncio.run(script())


def test_nobody_to_ask_is_told(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.stub._why = ""
    status = stage.stub.status()
    assert (status["in_force"], status["reason"]) == (
        False,
        "no name server is known besides the stub itself",
    )
    assert "network.resolve.upstream" in status["remedy"]
    assert ip_address(status["listen"]).is_loopback
    for each in stage.stub._sockets:
        assert isinstance(each, socket.socket)
        each.close()
