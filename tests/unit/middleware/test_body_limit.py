"""A body is read before its view asks for it up to a size and for a time, and no further."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest

from gateway.middleware import body_limit
from gateway.middleware.body_limit import BodyLimit
from gateway.middleware.refusal import Message, Receive, Send, send_oauth_refusal

LIMIT = 10


class Inner:
    """Reads a body as Django does, answers, and then waits for the client's end."""

    def __init__(self) -> None:
        self.body: bytes | None = None
        self.last: Message = {}

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        parts = []
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            parts.append(message.get("body", b""))
            if not message.get("more_body", False):
                break
        self.body = b"".join(parts)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})
        self.last = await receive()


def part(body: bytes, *, more: bool) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


async def ask(messages: Iterable[Message], **headers: str) -> tuple[Inner, list[Message]]:
    """Send one request; a client that has nothing more to say stays silent."""
    inner, sent, waiting = Inner(), list[Message](), list(messages)

    async def receive() -> Message:
        if not waiting:
            await asyncio.sleep(60)
        return waiting.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await BodyLimit(inner, max_bytes=LIMIT)({"type": "http", "headers": pairs}, receive, send)
    return inner, sent


def error_of(sent: list[Message]) -> tuple[int, dict[str, Any]]:
    assert (b"connection", b"close") in sent[0]["headers"]
    return sent[0]["status"], json.loads(sent[1]["body"])


async def test_a_body_within_the_limit_passes_and_the_disconnect_after_it() -> None:
    gone = {"type": "http.disconnect"}
    inner, sent = await ask([part(b"12345", more=True), part(b"67890", more=False), gone])
    assert (inner.body, inner.last, sent[0]["status"]) == (b"1234567890", gone, 200)


async def test_a_body_that_is_announced_too_large_is_not_read() -> None:
    inner, sent = await ask([part(b"1", more=True)], content_length="11", x_request_id="abc")
    status, answer = error_of(sent)
    assert (status, answer["error"], answer["requestId"]) == (413, "body_too_large", "abc")
    assert inner.body is None


@pytest.mark.parametrize("length", ["²", "-1", "1.5", "<script>"])
async def test_a_length_that_is_no_number_is_refused(length: str) -> None:
    inner, sent = await ask([part(b"1", more=False)], content_length=length)
    status, answer = error_of(sent)
    assert (status, answer["error"]) == (400, "bad_request")
    assert inner.body is None


async def test_a_limit_may_refuse_in_oauths_form() -> None:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return part(b"12345678901", more=False)

    limit = BodyLimit(Inner(), max_bytes=LIMIT, send_refusal=send_oauth_refusal)
    await limit({"type": "http", "headers": []}, receive, send)
    status, answer = error_of(sent)
    assert (status, answer["error"], set(answer)) == (413, "invalid_request", {"error", "error_description"})
    assert (b"access-control-allow-origin", b"*") in sent[0]["headers"]


@pytest.mark.parametrize("announced", [{}, {"content_length": "5"}])
async def test_a_body_that_grows_too_large_is_given_up(announced: dict[str, str]) -> None:
    inner, sent = await ask([part(b"123456", more=True), part(b"78901", more=False)], **announced)
    assert error_of(sent)[0] == 413
    assert inner.body is None


@pytest.mark.parametrize("first", [[], [part(b"1", more=True)]], ids=["headers only", "one byte"])
async def test_a_body_that_does_not_come_is_given_up(first: list[Message], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "BODY_TIMEOUT_S", 0.05)
    inner, sent = await ask(first, content_length="2")
    status, answer = error_of(sent)
    assert (status, answer["error"]) == (408, "request_timeout")
    assert inner.body is None


async def test_waiting_for_the_disconnect_has_no_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(body_limit, "BODY_TIMEOUT_S", 0.05)
    with pytest.raises(TimeoutError):  # still waiting, undisturbed
        async with asyncio.timeout(0.2):
            await ask([part(b"", more=False)])


async def test_a_client_that_leaves_is_not_answered() -> None:
    inner, sent = await ask([part(b"1", more=True), {"type": "http.disconnect"}])
    assert (inner.body, sent) == (None, [])
