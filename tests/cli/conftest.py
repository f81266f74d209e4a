"""A running control server with fake handlers, and a runner of the command line against it."""

import asyncio
import threading

import pytest
from click.testing import CliRunner

from agentsh_net.cli.main import cli
from agentsh_net.control.server import Server


class FakeDaemon:
    """A control server in a thread of its own. `answers` are results, exceptions to raise, or functions of the arguments."""

    def __init__(self, path):
        self.path = path
        self.answers = {}
        self.asked = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._server = None

    def start(self):
        self._thread.start()
        self._server = Server(self.path, {name: self._handler(name) for name in self.answers})
        asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(5)

    def close(self):
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._server.close(), self._loop).result(5)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    def publish_when_followed(self, *events):
        """Publish as soon as somebody follows, then end the stream by closing."""

        async def publish():
            while not self._server._followers._wanted:
                await asyncio.sleep(0.001)
            for event in events:
                self._server.publish(event)
            await self._server.close()

        return asyncio.run_coroutine_threadsafe(publish(), self._loop)

    def close_soon(self):
        self._loop.call_soon(lambda: self._loop.create_task(self._server.close()))

    def _handler(self, name):
        async def handle(args, peer):
            self.asked.append((name, dict(args)))
            answer = self.answers[name]
            if isinstance(answer, Exception):
                raise answer
            return answer(args) if callable(answer) else answer

        return handle


@pytest.fixture
def socket(tmp_path):
    return tmp_path / "control.sock"


@pytest.fixture
def daemon(socket):
    """Return a function that starts a daemon with these answers."""
    made = FakeDaemon(socket)

    def start(**answers):
        made.answers = {name.replace("__", "."): answer for name, answer in answers.items()}
        made.start()
        return made

    yield start
    made.close()


@pytest.fixture
def run(socket):
    """Return a function that runs the command line against the socket."""

    def invoke(*args):
        return CliRunner().invoke(cli, ["--socket", str(socket), *map(str, args)], prog_name="agentsh-net")

    return invoke
