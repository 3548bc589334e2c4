"""Database work from an async test: in a thread of its own, whose connection is closed afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from django.db import connections

T = TypeVar("T")


async def in_thread(work: Callable[[], T]) -> T:
    """Run synchronous `work` beside the loop."""

    def run() -> T:
        try:
            return work()
        finally:
            connections.close_all()

    return await asyncio.to_thread(run)
