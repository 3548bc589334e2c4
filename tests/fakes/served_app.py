"""An ASGI application behind uvicorn with the gateway's protocol, in the test's own loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import uvicorn


@contextlib.asynccontextmanager
async def served(app: Any, **options: Any) -> AsyncIterator[int]:
    """The port it listens on. `options`: of uvicorn.Config."""
    config = uvicorn.Config(
        app, port=0, http="gateway.http_protocol:BoundedHttpProtocol", lifespan="off", log_config=None, **options
    )
    server = uvicorn.Server(config)
    serving = asyncio.ensure_future(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    await serving
