"""Which name servers this system uses (resolv.conf(5)), and the ones that our own questions go to.

They are the same, but for our stub: a machine that is pointed at it must not make it ask itself.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from typing import TYPE_CHECKING

from agentsh_net.core.network.addresses import Address, plain

# dnspython is imported where it is first used: it takes a tenth of a second, which a start to literal addresses need not wait for.
if TYPE_CHECKING:
    import dns.asyncresolver

RESOLV_CONF = Path("/etc/resolv.conf")
# Where systemd-resolved says whom it asks itself (systemd-resolved.service(8)).
BEHIND_RESOLVED = Path("/run/systemd/resolve/resolv.conf")
# How old (seconds) what was read may be: a laptop that changes its network is followed soon.
_FRESH = 5.0


class NameServers:
    """Reads the files anew every few seconds. `chosen` are the operator's instead; `stub` is never among them."""

    def __init__(
        self,
        chosen: Sequence[str] = (),
        stub: str = "",
        *,
        files: Sequence[Path] = (RESOLV_CONF, BEHIND_RESOLVED),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._chosen, self._stub, self._files, self._clock = tuple(chosen), stub, files, clock
        self._read_at: float | None = None
        self._asked: tuple[str, ...] = ()
        self._all: frozenset[Address] = frozenset()
        self._search: tuple[str, ...] = ()

    def asked(self) -> tuple[str, ...]:
        """Return whom our own questions go to; nobody, where the stub is all that the system knows."""
        self._refresh()
        return self._asked

    def addresses(self) -> Collection[Address]:
        """Return every name server of the system."""
        self._refresh()
        return self._all

    def has(self, address: Address) -> bool:
        """Say whether a name server of the system has this address."""
        self._refresh()
        return plain(address) in self._all

    def search(self) -> tuple[str, ...]:
        """Return the search list."""
        self._refresh()
        return self._search

    def resolver(self) -> dns.asyncresolver.Resolver:
        """Return a resolver that asks them. Raises DNSException where there is nobody to ask."""
        import dns.asyncresolver
        import dns.exception
        import dns.resolver

        from agentsh_net.kernel.names.large_answers import NameServer

        try:
            found = dns.asyncresolver.Resolver(str(self._files[0]))  # with its options
        except dns.exception.DNSException:
            found = dns.asyncresolver.Resolver(configure=False)
        found.nameservers = [NameServer(server) for server in self.asked()]
        if not found.nameservers:
            raise dns.resolver.NoResolverConfiguration
        return found

    def _refresh(self) -> None:
        now = self._clock()
        if self._read_at is not None and now - self._read_at < _FRESH:
            return
        self._read_at = now
        listed = [_configuration(path) for path in self._files]
        each = [servers for servers, _ in listed]
        others = [[s for s in servers if s != self._stub] for servers in each]
        self._asked = self._chosen or tuple(next((found for found in others if found), ()))
        self._all = frozenset(
            plain(address) for servers in (*each, self._chosen) for s in servers if (address := _address(s))
        )
        self._search = listed[0][1]


def failure(error: Exception) -> str:
    """Return why a question got no answer: what each server said that was asked."""
    tried = getattr(error, "kwargs", {}).get("errors", ())  # dnspython's; a server as `Do53:192.0.2.1@53`
    said = (
        f"{server.partition(':')[2].removesuffix('@53')}: {getattr(why, 'strerror', None) or why}"
        for server, _, _, why, _ in tried
    )
    return "; ".join(dict.fromkeys(said)) or f"{type(error).__name__}: {error}"


def _configuration(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the name servers and the search list of a file; none of either where it cannot be read."""
    servers: list[str] = []
    search: tuple[str, ...] = ()
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return (), ()
    for line in text.splitlines():
        keyword, *words = line.split() or [""]
        if keyword == "nameserver":
            servers += words[:1]
        elif keyword in {"search", "domain"}:  # the last one counts
            search = tuple(word.rstrip(".").lower() for word in words if word.strip("."))
    return tuple(servers), search


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(text.partition("%")[0])
    except ValueError:
        return None
