"""A mail server whose replies come byte by byte, each in time, and have no end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

# The greeting, then the replies to EHLO, MAIL, RCPT, DATA and the message.
REPLIES = (b"220 hello\r\n", b"250 hello\r\n", b"250 ok\r\n", b"250 ok\r\n", b"354 go on\r\n")
# The head of a record of TLS, 16 KiB of which never come.
TLS = b"\x16\x03\x03\x40\x00"
BETWEEN_BYTES_S = 0.02


@contextmanager
def dripping_after(replies: int, opening: bytes = b"") -> Iterator[int]:
    """Yields its port. `replies`: so many are whole. `opening` is sent at once, before the drops."""
    listening, stopped = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def talk(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            for number, reply in enumerate(REPLIES[:replies]):
                if number:
                    connection.recv(65_536)
                connection.sendall(reply)
            connection.sendall(opening)
            while not stopped.wait(BETWEEN_BYTES_S):
                connection.sendall(b"2")

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=talk, args=(listening.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        stopped.set()
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(10)
