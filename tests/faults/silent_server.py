"""A server that accepts every connection and never answers."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import Counter
from collections.abc import Iterator


class SilentServer:
    """`held` connections are open now, `most_held` were at once; `asked` counts the requests by path."""

    def __init__(self) -> None:
        self.held = self.most_held = 0
        self.asked: Counter[str] = Counter()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._listener.setblocking(False)
        self._heads: dict[socket.socket, bytes] = {}
        self._stopping = threading.Event()
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def serve(self) -> None:
        with selectors.DefaultSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ)
            while not self._stopping.is_set():
                found = [key.fileobj for key, _ in ready.select(0.1)]
                # A client that closes one connection and opens another is never counted twice.
                for each in sorted(found, key=lambda each: each is self._listener):
                    if each is self._listener:
                        self._accept(ready)
                    elif isinstance(each, socket.socket):
                        self._read(ready, each)
        for each in (*self._heads, self._listener):
            each.close()

    def stop(self) -> None:
        self._stopping.set()

    def _accept(self, ready: selectors.BaseSelector) -> None:
        connection, _ = self._listener.accept()
        connection.setblocking(False)
        ready.register(connection, selectors.EVENT_READ)
        self._heads[connection] = b""
        self.held += 1
        self.most_held = max(self.most_held, self.held)

    def _read(self, ready: selectors.BaseSelector, connection: socket.socket) -> None:
        received = b""
        with contextlib.suppress(ConnectionError):
            received = connection.recv(65536)
        if not received:
            ready.unregister(connection)
            del self._heads[connection]
            connection.close()
            self.held -= 1
            return
        head = self._heads[connection]
        if b"\r\n" not in head and b"\r\n" in head + received:
            self.asked[(head + received).split(b" ", 2)[1].decode()] += 1
        self._heads[connection] = (head + received)[:8192]


@contextlib.contextmanager
def silent_server() -> Iterator[SilentServer]:
    server = SilentServer()
    thread = threading.Thread(target=server.serve, name="silent server", daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stop()
        thread.join(10)
