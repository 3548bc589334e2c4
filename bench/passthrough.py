"""The yardstick: a bare ASGI application that forwards the body with aiohttp and does nothing else.

Served by uvicorn with the gateway's own flags: `uvicorn bench.passthrough:application`. VENDOR_URL says where to.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

import aiohttp

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# A proxy that understands nothing still has to carry these for the vendor to answer.
FORWARDED = frozenset({b"content-type", b"accept", b"x-bench-key", b"mcp-session-id", b"mcp-protocol-version"})


class PassThrough:
    """One client session for the life of the process."""

    def __init__(self, vendor_url: str) -> None:
        self._vendor_url = vendor_url
        self._client: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Dispatch one scope."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._forward(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            event = (await receive())["type"]
            if event == "lifespan.startup":
                self._client = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False
                )
            elif self._client is not None:
                await self._client.close()
            await send({"type": f"{event}.complete"})
            if event == "lifespan.shutdown":
                return

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await _read(receive)
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"] if name in FORWARDED}
        assert self._client is not None
        async with self._client.post(self._vendor_url, data=body, headers=headers) as answer:
            content = await answer.read()
            status, kind = answer.status, answer.headers.get("Content-Type", "application/json")
        answered = [(b"content-type", kind.encode("latin-1")), (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": answered})
        await send({"type": "http.response.body", "body": content})


async def _read(receive: Receive) -> bytes:
    message = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body"):
        message = await receive()
        body += message.get("body", b"")
    return body


application = PassThrough(os.environ.get("VENDOR_URL", ""))
