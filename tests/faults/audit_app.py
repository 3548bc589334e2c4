"""A program with one route: it keeps a record of every request and answers its id. The crash tests kill it.

Reads DATABASE_URL like the service does; prints the port it listens on. POST /write keeps a finished call, POST /call
an intent and then its outcome. The caller's X-Request-Id becomes the record's.
"""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

os.environ["DJANGO_SETTINGS_MODULE"] = "gateway.settings"

import uvicorn
from msgspec.structs import replace

from audit.call_record import CallRecord
from audit.pending_record import AuditUnavailable
from audit.writer import AuditWriter

ORGS = [uuid.UUID("11111111-1111-4111-8111-111111111111"), uuid.UUID("22222222-2222-4222-8222-222222222222")]
writer = AuditWriter()


async def application(
    scope: MutableMapping[str, Any],
    receive: Callable[[], Awaitable[object]],
    send: Callable[[dict[str, object]], Awaitable[None]],
) -> None:
    """Answer 200 with the record's id once it is committed, else 503."""
    request_id = dict(scope["headers"])[b"x-request-id"].decode()
    record = CallRecord(
        org_id=ORGS[ord(request_id[0]) % 2],
        user_id="user-1",
        user_label="Ana",
        source="cli",
        request_id=request_id,
        vendor="acme",
        tool="acme_reboot",
    )
    try:
        if scope["path"] == "/call":
            await writer.write(record)
        await writer.write(replace(record, status="success", duration_ms=1))
    except AuditUnavailable:
        status, body = 503, b"unavailable"
    else:
        status, body = 200, str(record.id).encode()
    headers = [(b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def main() -> None:
    """Serve until killed."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)  # noqa: T201
    config = uvicorn.Config(
        application, loop="uvloop", http="httptools", lifespan="off", log_level="warning", access_log=False
    )
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
