"""An address where nobody ever takes up a connection."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def deaf_port() -> Iterator[int]:
    """A port whose line of new connections is full: connecting takes for ever."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port: int = listener.getsockname()[1]
        callers = [socket.socket() for _ in range(4)]
        try:
            for caller in callers:
                caller.setblocking(False)
                caller.connect_ex(("127.0.0.1", port))
            time.sleep(0.05)
            yield port
        finally:
            for caller in callers:
                caller.close()
