"""A client that reads an answer part by part, at its own pace, and may leave before the end: ASGI without a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

from gateway.asgi import application
from proxy.protocol.sse import SSEParser
from tests.api.proxy.conftest import headers


class Stream:
    """One request to the hot path. Call `read` for each message; without it the gateway finds nobody reading."""

    def __init__(
        self, path: str, bearer: str, body: object, more: dict[str, str] | None = None, method: str = "POST"
    ) -> None:
        sent = {"Host": "testserver", "Content-Type": "application/json", **headers(bearer, more or {})}
        scope = post_scope(path, [(name.lower().encode(), value.encode()) for name, value in sent.items()])
        scope["method"] = method
        self.status = 0
        self.headers: dict[str, str] = {}
        self.comments = 0
        self.has_ended = False
        self._body = json.dumps(body).encode()
        self._sent: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue(1)
        self._left = asyncio.Event()
        self._parser = SSEParser()
        self._events: list[bytes] = []
        self.task = asyncio.ensure_future(application(scope, self._receive, self._sent.put))

    async def begin(self) -> None:
        """The head of the answer is there."""
        start = await self._next()
        self.status = start["status"]
        self.headers = {name.decode(): value.decode() for name, value in start["headers"]}

    async def read(self) -> dict[str, Any] | None:
        """The next message, or None at the end."""
        while not self._events and not self.has_ended:
            part = await self._next()
            self._events += [event.data for event in self._parser.feed(part.get("body", b"")) if event.data]
            self.comments = self._parser.comments
            self.has_ended = not part.get("more_body", False)
        return json.loads(self._events.pop(0)) if self._events else None

    async def read_all(self) -> list[dict[str, Any]]:
        """Every message that is left."""
        found = []
        while (message := await self.read()) is not None:
            found.append(message)
        return found

    async def __aenter__(self) -> Stream:
        """Its answer has begun."""
        try:
            await self.begin()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *fault: object) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])

    async def leave(self) -> None:
        """As a client that closes its connection; back when the gateway is done with it."""
        self._left.set()
        await asyncio.wait_for(self.task, 60)

    async def _next(self) -> MutableMapping[str, Any]:
        return await asyncio.wait_for(self._sent.get(), 10)

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._body:
            body, self._body = self._body, b""
            return {"type": "http.request", "body": body, "more_body": False}
        await self._left.wait()
        return {"type": "http.disconnect"}


def streaming(bearer: str, params: dict[str, Any], path: str = "/v1/mcp") -> Stream:
    """A tools/call."""
    return Stream(path, bearer, {"jsonrpc": "2.0", "id": "call-1", "method": "tools/call", "params": params})


def post_scope(path: str, sent: list[tuple[bytes, bytes]]) -> dict[str, Any]:
    """A POST as the server hands it to the application."""
    return {
        "type": "http",
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": sent,
        "client": ("127.0.0.1", 5000),
        "server": ("testserver", 80),
    }
