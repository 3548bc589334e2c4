"""A webhook's receiver and a vendor that note when they were asked, in threads of this process."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Noted:
    """`arrivals`: when each event came first, by path and id. `probes`: the times of all requests to PROBED."""

    PROBED = "/mcp"

    def __init__(self) -> None:
        self.url = ""
        self.arrivals: dict[str, dict[str, float]] = {}
        self.probes: list[float] = []

    def first_arrival(self, path: str) -> float | None:
        return min(self.arrivals.get(path, {}).values(), default=None)


@contextlib.contextmanager
def answering_servers() -> Iterator[Noted]:
    noted = Noted()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            now = time.time()
            if self.path == noted.PROBED:
                noted.probes.append(now)
                self._answer(401)  # as a vendor that wants a credential
                return
            known = noted.arrivals.setdefault(self.path, {})
            for event in json.loads(body)["events"]:
                known.setdefault(event["id"], now)
            self._answer(200)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    noted.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="answering servers", daemon=True)
    thread.start()
    try:
        yield noted
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
