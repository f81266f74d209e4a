"""Reads the hosts file (hosts(5)): the operator's word on names, whatever addresses it gives. Noticed when it changes."""

from __future__ import annotations

from pathlib import Path

from agentsh_net.core.network.addresses import Address, literal

# A block list of a hundred thousand names is about 3 MB; what stands beyond this is not read.
_MAX_BYTES = 8 << 20


class HostsFile:
    """The file at `path`, read again when its time or size changed; an absent file says nothing."""

    def __init__(self, path: Path = Path("/etc/hosts")) -> None:
        self._path = path
        self._stamp: tuple[int, int] | None = None
        self._names: dict[str, tuple[Address, ...]] = {}

    def refresh(self) -> bool:
        """Read the file if it changed; say whether it did."""
        try:
            stat = self._path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size)
            if stamp == self._stamp:
                return False
            with self._path.open("rb") as file:
                self._names = _parse(file.read(_MAX_BYTES).decode("utf-8", "replace"))
        except OSError:
            return False  # unreadable: what was known stays
        self._stamp = stamp
        return True

    def addresses(self, name: str) -> tuple[Address, ...]:
        """Return the addresses of a name; `localhost` is loopback even where the file does not say so (RFC 6761, 6.3)."""
        name = name.rstrip(".").lower()
        found = self._names.get(name, ())
        if not found and is_localhost(name):
            return tuple(a for text in ("127.0.0.1", "::1") if (a := literal(text)))
        return found


def is_localhost(name: str) -> bool:
    """Say whether a name means this host by definition."""
    name = name.rstrip(".").lower()
    return name == "localhost" or name.endswith(".localhost")


def _parse(text: str) -> dict[str, tuple[Address, ...]]:
    names: dict[str, list[Address]] = {}
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        address = literal(words[0]) if words else None
        if address is not None:
            for name in words[1:]:
                names.setdefault(name.rstrip(".").lower(), []).append(address)
    return {name: tuple(dict.fromkeys(found)) for name, found in names.items()}
