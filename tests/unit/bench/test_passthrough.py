"""The bare proxy forwards and answers, nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from bench.passthrough import PassThrough


class VendorResponse:
    """The answer of the fake client."""

    status = 404
    headers: Mapping[str, str] = {"Content-Type": "text/event-stream"}

    async def read(self) -> bytes:
        return b"from the vendor"


class FakeClient:
    """Remembers one post."""

    def __init__(self) -> None:
        self.posted: tuple[str, bytes, Mapping[str, str]] | None = None

    @asynccontextmanager
    async def post(self, url: str, *, data: bytes, headers: Mapping[str, str]) -> AsyncIterator[VendorResponse]:
        self.posted = (url, data, headers)
        yield VendorResponse()


async def test_body_and_needed_headers_go_to_the_vendor_and_its_answer_comes_back() -> None:
    application, client = PassThrough("http://vendor/mcp"), FakeClient()
    application._client = client  # type: ignore[assignment]
    parts = [{"type": "http.request", "body": b"to ", "more_body": True}, {"type": "http.request", "body": b"it"}]
    sent: list[Any] = []

    async def receive() -> Any:
        return parts.pop(0)

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"host", b"ours"), (b"x-bench-key", b"key"), (b"content-type", b"application/json")]
    await application({"type": "http", "headers": headers}, receive, send)
    assert client.posted == (
        "http://vendor/mcp",
        b"to it",
        {"x-bench-key": "key", "content-type": "application/json"},
    )
    assert sent[0]["status"] == 404
    assert dict(sent[0]["headers"]) == {b"content-type": b"text/event-stream", b"content-length": b"15"}
    assert sent[1]["body"] == b"from the vendor"


async def test_it_opens_and_closes_its_client_with_the_server() -> None:
    application = PassThrough("http://vendor/mcp")
    events = ["lifespan.startup", "lifespan.shutdown"]
    sent: list[str] = []

    async def receive() -> Any:
        return {"type": events.pop(0)}

    async def send(message: Any) -> None:
        sent.append(message["type"])

    await application({"type": "lifespan"}, receive, send)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert application._client is not None
    assert application._client.closed
