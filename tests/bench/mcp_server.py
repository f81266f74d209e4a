"""A Streamable HTTP server of the older revision that does next to nothing, so that what is in front of it shows.

`mcp_server.py PORT [TOOLS]`
"""

from __future__ import annotations

import asyncio
import itertools
import re
import sys

import uvloop

NUMBER = re.compile(rb'"id":\s*("[^"]*"|[0-9]+)')
LENGTH = re.compile(rb"content-length:\s*([0-9]+)", re.IGNORECASE)
SESSIONS = itertools.count(1)
INIT = b'{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bench","version":"1"}}'
CALL = b'{"content":[{"type":"text","text":"Echo: hi"}],"isError":false}'
COUNT = int(sys.argv[2]) if len(sys.argv) > 2 else 1
TOOLS = b'{"tools":[%b]}' % b",".join(
    b'{"name":"add%b","description":"Add two numbers.","inputSchema":{"type":"object","properties":{"a":{"type":"integer",'
    b'"description":"first"},"b":{"type":"integer"}},"required":["a"]}}' % (b"_%d" % n if n else b"")
    for n in range(COUNT)
)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            length = LENGTH.search(head)
            body = await reader.readexactly(int(length[1])) if length else b""
            if head.startswith(b"GET"):
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                )
            elif head.startswith(b"DELETE"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            else:
                writer.write(answer(body))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def answer(body: bytes) -> bytes:
    number = NUMBER.search(body)
    if number is None:
        return b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
    extra, result = b"", CALL
    if b'"initialize"' in body:
        extra, result = b"Mcp-Session-Id: s-%d\r\n" % next(SESSIONS), INIT
    elif b'"tools/list"' in body:
        result = TOOLS
    message = b'{"jsonrpc":"2.0","id":' + number[1] + b',"result":' + result + b"}"
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n%bContent-Length: %d\r\n\r\n%b" % (
        extra,
        len(message),
        message,
    )


async def main(port: int) -> None:
    server = await asyncio.start_server(serve, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
