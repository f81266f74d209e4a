"""Reads answers that come by TCP beside the event loop: the owner of a name can have dnspython take 0.4 s over one of 64 KB."""

from __future__ import annotations

import asyncio
from typing import Any

import dns.message
import dns.nameserver
import dns.query


class NameServer(dns.nameserver.Do53Nameserver):
    """A name server as dnspython's resolver asks it."""

    async def async_query(
        self,
        request: dns.message.QueryMessage,
        timeout: float,  # noqa: ASYNC109 - dnspython's signature
        source: str | None,
        source_port: int,
        max_size: bool,
        *others: Any,
        **options: Any,
    ) -> dns.message.Message:
        """Ask by UDP, or by TCP where the answer may be large (`max_size`). Raises DNSException, OSError and EOFError."""
        if not max_size:
            return await super().async_query(
                request, timeout, source, source_port, max_size, *others, **options
            )
        try:
            async with asyncio.timeout(timeout):
                wire = await self._over_tcp(request.to_wire())
        except TimeoutError as error:
            raise TimeoutError("timed out") from error  # or there would be no word of it in `status`
        response = await asyncio.to_thread(dns.message.from_wire, wire)
        if not request.is_response(response):
            raise dns.query.BadResponse
        return response

    async def _over_tcp(self, query: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self.address, self.port)
        try:
            writer.write(len(query).to_bytes(2, "big") + query)
            return await reader.readexactly(int.from_bytes(await reader.readexactly(2), "big"))
        finally:
            writer.close()
