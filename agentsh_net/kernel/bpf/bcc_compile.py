"""The loader child: compiles the probes with BCC, loads them, hands programs and maps over a socket, and ends.

Run by loader.py as `python -m agentsh_net.kernel.bpf.bcc_compile FD`. The one door to bcc. It lives in a process of its own
because LLVM keeps more than 100 MB that the daemon would never give back.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from agentsh_net.kernel.bpf import headers, syscall
from agentsh_net.kernel.bpf.probe_source import MAPS, PROGRAMS, directory


def compile_probes(tree: headers.Headers, source: Path) -> Any:
    """Return BCC's module, programs loaded. Whatever BCC raises is raised: it has no exceptions of its own."""
    from bcc import BPF

    os.environ.pop("BCC_KERNEL_SOURCE", None)
    if tree.path:
        os.environ["BCC_KERNEL_SOURCE"] = tree.path
    text = (source / "connect.bpf.c").read_bytes()
    module = BPF(text=text, cflags=["-DAGENTSH_BCC", f"-I{source}", "-Wno-macro-redefined"])
    for name, attach_type in PROGRAMS.items():
        module.load_func(name.encode(), syscall.PROGRAM_TYPES[attach_type], attach_type=attach_type)
    return module


def _say(text: str) -> None:
    """Write to standard error, which the parent keeps and shows where nothing worked; the compiler writes there too."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def main(fd: int) -> int:
    """Try the header trees in order; send the first success over `fd`. What failed is on standard error."""
    from bcc.libbcc import lib

    source = directory()
    with tempfile.TemporaryDirectory(prefix="agentsh-net-") as scratch, socket.socket(fileno=fd) as parent:
        for tree in headers.candidates(source, Path(scratch)):
            _say(f"compiling with {tree.name}")
            try:
                module = compile_probes(tree, source)
            except Exception as error:  # noqa: BLE001 - BCC raises bare Exception; the next tree is tried, the text is kept
                _say(f"{tree.name}: {error}")
                continue
            fds = [module.funcs[name.encode()].fd for name in PROGRAMS]
            # By BCC's library: its Python does not know every kind of map.
            fds += [lib.bpf_table_fd(module.module, name.encode()) for name in MAPS]
            names = {"programs": list(PROGRAMS), "maps": list(MAPS), "headers": tree.name}
            socket.send_fds(parent, [json.dumps(names).encode()], fds)
            return 0
    return 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
