"""The whole gateway as a client meets it: its ASGI application on a loop of its own, asked from the test's thread.

Requests are made by hand, so that paths, headers and bodies can be what no client library would send.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote_to_bytes

import httpx

from gateway.asgi import application
from proxy import runtime
from tests.api.proxy.conftest import end_database_threads
from tests.fakes.served_app import served

Header = tuple[str, str | bytes]
ANSWER_DEADLINE_S = 120.0
END_S = 60.0
MOST_REPEATS = 5


@dataclass(frozen=True)
class Sent:
    """A request. `chunks` instead of `body` for one without a declared length."""

    method: str
    target: str
    headers: Sequence[Header] = ()
    body: bytes = b""
    chunks: Iterable[bytes] | None = None
    address: str = "127.0.0.1"

    def scope(self) -> dict[str, Any]:
        path, _, query = self.target.partition("?")
        headers = [(name.lower().encode("latin-1"), _bytes(value)) for name, value in self.headers]
        if self.body and not any(name == b"content-length" for name, _ in headers):
            headers.append((b"content-length", str(len(self.body)).encode()))
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": self.method,
            "scheme": "http",
            "path": unquote_to_bytes(path).decode("utf-8", "replace"),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": headers,
            "client": (self.address, 40_000),
            "server": ("testserver", 80),
            "state": {},
        }


def _bytes(value: str | bytes) -> bytes:
    return value if isinstance(value, bytes) else value.encode("latin-1")


@dataclass
class _Exchange:
    """One request under way: what the application reads, and what it has sent."""

    sent: Sent
    status: int = 0
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        chunks = [self.sent.body] if self.sent.chunks is None else self.sent.chunks
        self._chunks = iter(chunks)
        self._waits = asyncio.Event()
        self._is_open = True

    async def receive(self) -> dict[str, Any]:
        if self._is_open:
            chunk = next(self._chunks, None)
            self._is_open = chunk is not None and self.sent.chunks is not None
            return {"type": "http.request", "body": chunk or b"", "more_body": self._is_open}
        await self._waits.wait()  # the client stays until it has its answer
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            self.body.append(bytes(message.get("body", b"")))

    async def answer(self) -> httpx.Response:
        await application(self.sent.scope(), self.receive, self.send)
        assert self.status, "the application answered nothing"
        path = self.sent.target.partition("?")[0]
        content = b"".join(self.body)
        request = httpx.Request("POST", "http://testserver")  # cookies of an answer are those of a request
        extensions = {"path": path}
        return httpx.Response(
            self.status, headers=self.headers, content=content, request=request, extensions=extensions
        )


class Wire:
    """Sends requests; `close` ends the gateway's connections and threads."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway of attacks", daemon=True)
        self._thread.start()

    def send(self, sent: Sent) -> httpx.Response:
        """The answer."""
        return self.at_once(sent)[0]

    def at_once(self, *sent: Sent) -> list[httpx.Response]:
        """The answers to requests that are under way at the same time.

        A request that waited too long for the others' locks has changed nothing and gets 503: it is sent again.
        """

        async def all_of_them(some: Sequence[Sent]) -> list[httpx.Response]:
            return list(await asyncio.gather(*(_Exchange(each).answer() for each in some)))

        answers: list[httpx.Response] = self._run(all_of_them(sent))
        for _ in range(MOST_REPEATS):
            busy = [number for number, answer in enumerate(answers) if answer.status_code == 503]
            if not busy:
                break
            for number, answer in zip(busy, self._run(all_of_them([sent[each] for each in busy])), strict=True):
                answers[number] = answer
        return answers

    def settle(self) -> None:
        """Background work behind answers is done: tool lists are compared and noted."""

        async def settled() -> None:
            used = runtime.existing()
            if used is not None:
                await used.tool_change_detector.settled()

        self._run(settled())

    def over_tcp(self, request: bytes) -> httpx.Response:
        """The answer to these bytes on a connection to the gateway's own HTTP server."""

        async def exchange() -> httpx.Response:
            async with served(application) as port:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                answer = await reader.read()
                writer.close()
            head, _, body = answer.partition(b"\r\n\r\n")
            first, *lines = head.split(b"\r\n")
            headers = [(name, value.strip()) for name, _, value in (line.partition(b":") for line in lines)]
            return httpx.Response(int(first.split()[1]), headers=headers, content=body, extensions={"path": "/v1/mcp"})

        answered: httpx.Response = self._run(exchange())
        return answered

    def close(self) -> None:
        async def end() -> None:
            used = runtime.existing()
            await runtime.stop()
            if used is not None:
                await asyncio.to_thread(end_database_threads, used)
            await self._loop.shutdown_default_executor()

        self._run(end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(END_S)
        self._loop.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(ANSWER_DEADLINE_S)
