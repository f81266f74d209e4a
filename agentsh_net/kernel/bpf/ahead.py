"""Loads the probes in a thread while the rest of the program is still being imported: the verifier's time is not waited for twice.

Nothing is attached by it, so what another daemon enforces is not touched. How loading is done is loader.py's business.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future

from agentsh_net.core.configuration.settings import Network
from agentsh_net.core.errors import KernelError
from agentsh_net.kernel.bpf import loader, streams
from agentsh_net.kernel.cgroups import cgroup


def begin(network: Network) -> Callable[[], loader.Loaded] | None:
    """Begin to load what `network` asks for; return what waits for it and hands it over, None where nothing will be asked for.

    The result raises KernelError as `loader.load` would. It is to be called once, by whoever then owns the descriptors.
    """
    if network.mode == "off" or network.scope == "netns" or "ebpf" not in network.layers:
        return None
    try:
        root = cgroup.root()
    except KernelError:
        return None  # said where the layer is opened
    loaded: Future[loader.Loaded] = Future()

    def load() -> None:
        try:
            loaded.set_result(loader.load(network.bpf_loader, streams.of_predecessor(root)))
        except BaseException as error:  # noqa: BLE001 - raised again where the result is asked for
            loaded.set_exception(error)

    threading.Thread(target=load, name="probes", daemon=True).start()
    return loaded.result
