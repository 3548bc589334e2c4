"""A stand-in MCP vendor over Streamable HTTP, as lean as Python gets. A process of its own: `python -m bench.vendor`.

It keeps to the protocol where a client could notice: a handshake that issues a session id, sessions that must be
known, a credential header that must match. The text of a result names the `site` of the call's arguments, so that the
load generator sees when an answer belongs to another call.

GET /_stats answers counters, GET /_set?delay_ms=50&form=sse changes delay and form of tool results.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import sys
from collections import Counter
from collections.abc import Callable
from typing import cast
from urllib.parse import parse_qs

import httptools
import msgspec
import uvloop

from bench.vendor_answers import (
    KEPT_TOOL,
    LIST_PATH,
    MANY_TOOLS,
    READ_TOOL,
    STREAM_TOOL,
    TOOLS,
    WRITE_TOOL,
    answer,
    handshake,
    progress_stream,
    rpc,
    tool_result,
)

HOST = "127.0.0.1"
KEY_HEADER = b"x-bench-key"
SESSION_HEADER = b"mcp-session-id"
FORMS = ("json", "sse")
CALLED = frozenset({READ_TOOL, WRITE_TOOL, KEPT_TOOL, STREAM_TOOL})
MAX_DELAY_MS = 60_000
MAX_BODY_BYTES = 1024 * 1024


class Arguments(msgspec.Struct):
    """Of a tool call."""

    site: str = ""


class Meta(msgspec.Struct):
    """Of a request that wants progress."""

    token: int | str | None = msgspec.field(default=None, name="progressToken")


class Params(msgspec.Struct):
    """Of any request; only calls carry these."""

    name: str = ""
    arguments: Arguments = msgspec.field(default_factory=Arguments)
    meta: Meta = msgspec.field(default_factory=Meta, name="_meta")


class Message(msgspec.Struct):
    """One JSON-RPC request or notification."""

    method: str
    id: int | str | None = None
    params: Params = msgspec.field(default_factory=Params)


_messages = msgspec.json.Decoder(Message)


class Vendor:
    """State of the server: how to answer, whom it knows, what it has seen."""

    def __init__(self, key: str, *, call_later: Callable[..., object]) -> None:
        self.key = key.encode()
        self.delay_s = 0.0
        self.form = "json"
        self.counts: Counter[str] = Counter()
        self.call_later = call_later
        self._sessions: set[bytes] = set()

    def open_session(self) -> str:
        """A new session's id."""
        session_id = os.urandom(16).hex()
        self._sessions.add(session_id.encode())
        return session_id

    def knows(self, session_id: bytes) -> bool:
        """Whether the session was opened here."""
        return session_id in self._sessions

    def set(self, query: str) -> None:
        """Change delay and form. Raises: ValueError."""
        options = parse_qs(query, strict_parsing=True)
        delay_ms = int(options.get("delay_ms", ["0"])[0])
        form = options.get("form", ["json"])[0]
        if not 0 <= delay_ms <= MAX_DELAY_MS or form not in FORMS:
            raise ValueError("no such delay or form")
        self.delay_s, self.form = delay_ms / 1000, form


class VendorConnection(asyncio.Protocol):
    """One client connection; also the callbacks of its parser."""

    def __init__(self, vendor: Vendor) -> None:
        self._vendor = vendor
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.WriteTransport | None = None
        self.on_message_begin()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ready."""
        self._transport = cast(asyncio.WriteTransport, transport)  # uvloop's have no base class of asyncio's
        self._vendor.counts["connections"] += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Gone; an answer that is still due has nobody to go to."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Parse; the callbacks answer."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self._vendor.counts["malformed"] += 1
            if self._transport is not None:
                self._transport.close()

    # --- callbacks of the parser

    def on_message_begin(self) -> None:
        """The next request."""
        self._url = self._key = self._session = b""
        self._body: list[bytes] = []
        self._body_bytes = 0

    def on_url(self, url: bytes) -> None:
        """The request's target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Two headers matter."""
        lowered = name.lower()
        if lowered == KEY_HEADER:
            self._key = value
        elif lowered == SESSION_HEADER:
            self._session = value

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._body_bytes += len(body)
        if self._body_bytes <= MAX_BODY_BYTES:
            self._body.append(body)

    def on_message_complete(self) -> None:
        """Answer."""
        path, _, query = self._url.partition(b"?")
        if path.startswith(b"/mcp"):  # /mcp/1, /mcp/2 and so on are vendors of their own to a gateway
            self._mcp(self._parser.get_method())
        elif path == b"/_stats":
            self._write(answer(200, json.dumps(self._vendor.counts).encode()))
        elif path == b"/_set":
            self._set(query.decode("latin-1"))
        else:
            self._write(answer(404))

    # --- answers

    def _set(self, query: str) -> None:
        try:
            self._vendor.set(query)
        except ValueError:
            self._write(answer(400))
        else:
            self._write(answer(204))

    def _mcp(self, method: bytes) -> None:
        vendor = self._vendor
        if self._key != vendor.key:
            vendor.counts["unauthorized"] += 1
            self._write(answer(401))
        elif method == b"POST":
            self._post()
        else:
            vendor.counts[method.decode("latin-1")] += 1
            self._write(answer(200 if method == b"DELETE" else 405))

    def _post(self) -> None:
        vendor = self._vendor
        vendor.counts["posts"] += 1
        try:
            message = _messages.decode(self._body[0] if len(self._body) == 1 else b"".join(self._body))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            vendor.counts["malformed"] += 1
            return self._write(answer(400))
        vendor.counts[message.method] += 1
        if message.method == "initialize":
            return self._write(handshake(message.id, vendor.open_session()))
        if not vendor.knows(self._session):
            vendor.counts["unknown_session"] += 1
            return self._write(answer(404))
        if message.method == "tools/call" and message.params.name in CALLED:
            return self._call(message)
        if message.id is None:
            return self._write(answer(202))
        if message.method == "tools/list":
            tools = MANY_TOOLS if self._url.startswith(LIST_PATH) else TOOLS
            return self._write(rpc(message.id, "result", {"tools": tools}))
        return self._write(rpc(message.id, "error", {"code": -32601, "message": "Method not found"}))

    def _call(self, message: Message) -> None:
        vendor = self._vendor
        site = message.params.arguments.site
        if message.params.name == STREAM_TOOL:
            for part in progress_stream(message.id, message.params.meta.token, site):
                self._write(part)
            return
        reply = tool_result(message.id, site, vendor.form)
        if vendor.delay_s:
            vendor.call_later(vendor.delay_s, self._write, reply)
        else:
            self._write(reply)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)


async def serve(port: int, key: str) -> None:
    """Serve until the process ends; the first line on standard output is {"port"}."""
    loop = asyncio.get_running_loop()
    vendor = Vendor(key, call_later=loop.call_later)
    server = await loop.create_server(lambda: VendorConnection(vendor), HOST, port, backlog=1024)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    gc.freeze()
    await server.serve_forever()


def main() -> int:
    """Read the options and serve."""
    parser = argparse.ArgumentParser(prog="python -m bench.vendor")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", required=True, help=f"what {KEY_HEADER.decode()} must hold")
    options = parser.parse_args()
    uvloop.run(serve(options.port, options.key))
    return 0


if __name__ == "__main__":
    sys.exit(main())
