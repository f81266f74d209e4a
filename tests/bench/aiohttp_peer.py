"""A peer of the proxy bench: what one writes with aiohttp in an hour, a server and a client, and nothing in between.

usage: aiohttp_peer.py PORT UPSTREAM_PORT    (run by the interpreter of the bench's own environment)
"""

from __future__ import annotations

import sys

from aiohttp import ClientSession, TCPConnector, web


async def relay(request: web.Request) -> web.StreamResponse:
    """Ask upstream, and pass the answer on as it comes."""
    session: ClientSession = request.app["session"]
    body = await request.read()
    fields = {k: v for k, v in request.headers.items() if k.lower() not in ("host", "content-length")}
    async with session.request(
        request.method, UPSTREAM + request.path_qs, data=body, headers=fields
    ) as answer:
        kept = {
            k: v
            for k, v in answer.headers.items()
            if k.lower() not in ("transfer-encoding", "content-length")
        }
        out = web.StreamResponse(status=answer.status, headers=kept)
        if answer.content_length is not None:
            out.content_length = answer.content_length
        await out.prepare(request)
        async for data in answer.content.iter_any():
            await out.write(data)
        await out.write_eof()
        return out


async def start(app: web.Application) -> None:
    """Open the client."""
    app["session"] = ClientSession(connector=TCPConnector(limit=0), auto_decompress=False)


UPSTREAM = f"http://127.0.0.1:{sys.argv[2]}"
application = web.Application()
application.on_startup.append(start)
application.router.add_route("*", "/{path:.*}", relay)
web.run_app(application, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
