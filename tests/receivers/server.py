"""The HTTP server under every receiver: threads, keep-alive, gzip, and connections that end as a fault says."""

from __future__ import annotations

import socket
import ssl
import sys
import threading
import zlib
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.receivers.faults import Fault
from tests.receivers.wire import Reply, Request

MOST_BYTES = 64 * 1024 * 1024
Handle = Callable[[Request], tuple[Reply, Fault | None]]


class _Threads(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, server: Server, tls: ssl.SSLContext | None) -> None:
        self.owner, self.tls = server, tls
        super().__init__(("127.0.0.1", 0), _Connection)

    def get_request(self) -> tuple[socket.socket, tuple[str, int]]:
        connection, address = super().get_request()
        if self.tls is not None:
            # The handshake waits for the connection's own thread.
            connection = self.tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request: object, client_address: object) -> None:
        fault = sys.exc_info()[1]
        if not isinstance(fault, OSError):  # a connection that ended early is the other side's right
            self.owner.failed(f"the receiver failed: {fault!r}")


class Server:
    """Answers what `handle` says, until it is stopped."""

    def __init__(self, handle: Handle, failed: Callable[[str], None], tls: ssl.SSLContext | None) -> None:
        self.handle, self.failed = handle, failed
        self.stopping = threading.Event()
        self._http = _Threads(self, tls)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self._http.server_address[1]}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), name="receiver", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join(10)
        self._http.server_close()


class _Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Threads
    timeout = 60  # of a connection that is kept open and says nothing
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        owner = self.server.owner
        reply, fault = owner.handle(Request(self.command, self.path, self.headers, *self._bodies(owner)))
        if fault is not None and fault.kind == "hangs":
            owner.stopping.wait()
        if fault is not None and fault.kind == "slow":
            owner.stopping.wait(fault.seconds)
        if fault is not None and fault.kind in ("hangs", "raw"):
            self.wfile.write(reply.body)
            self.close_connection = True
            return
        self._send(reply)

    def _bodies(self, owner: Server) -> tuple[bytes, bytes]:
        """As it came, and decoded. Every platform takes one length and at most gzip."""
        lengths = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(lengths) > 1:
            owner.failed("a body without one Content-Length")
            self.close_connection = True
            return b"", b""
        raw = self.rfile.read(min(int(lengths[0]), MOST_BYTES)) if lengths else b""
        coding = self.headers.get("Content-Encoding", "identity")
        if coding == "identity":
            return raw, raw
        if coding != "gzip":
            owner.failed(f"Content-Encoding {coding}")
            return raw, b""
        return raw, _unzipped(raw, owner)

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        has_body = reply.status != 204 and reply.status != 304
        if has_body:
            self.send_header("Content-Length", str(len(reply.body)))
        self.end_headers()
        if has_body and self.command != "HEAD":
            self.wfile.write(reply.body)

    def log_message(self, *_: object) -> None:
        """Tests read `requests` instead."""


for _method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"):
    setattr(_Connection, f"do_{_method}", _Connection.do_POST)


def _unzipped(raw: bytes, owner: Server) -> bytes:
    """One whole gzip member and nothing behind it."""
    stream = zlib.decompressobj(wbits=31)
    try:
        body = stream.decompress(raw, MOST_BYTES)
    except zlib.error as fault:
        owner.failed(f"the body is not gzip: {fault}")
        return b""
    if not stream.eof or stream.unused_data:
        owner.failed("the gzip stream has no end, or something behind it")
    return body
