"""The bodies of answers that are streamed by an asynchronous iterator."""

from __future__ import annotations

from typing import Any

from asgiref.sync import async_to_sync


def body_of(answer: Any) -> bytes:
    """The whole body of an answer of Django's test client, streamed or not."""
    return b"".join(parts_of(answer)) if answer.streaming else bytes(answer.content)


def parts_of(answer: Any) -> list[bytes]:
    """Each part as it was sent."""

    async def read() -> list[bytes]:
        return [part async for part in answer]

    return async_to_sync(read)() if answer.is_async else list(answer)
