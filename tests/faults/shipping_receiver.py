"""A webhook's receiver that may be killed at any time: `python shipping_receiver.py PORT FOLDER`.

It answers 200 when a batch is a line of FOLDER/batches on the disk. Each request adds a byte to FOLDER/begun first.
"""

import os
import random
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LONGEST_PAUSE_S = 0.2  # before the line is written, and again before the answer
_LONGEST_LINE = 2 * 1024 * 1024


class Receiver:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._lock = threading.Lock()
        self._begun = os.open(folder / "begun", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._batches = os.open(folder / "batches", os.O_RDWR | os.O_APPEND | os.O_CREAT)
        self._cut_half_line()

    def begin(self) -> None:
        os.write(self._begun, b".")

    def keep(self, batch_id: str, body: bytes) -> None:
        line = b'{"at":%.3f,"batch":"%s","body":%s}\n' % (time.time(), batch_id.encode(), body)
        with self._lock:
            left = memoryview(line)
            while left:
                left = left[os.write(self._batches, left) :]
            os.fsync(self._batches)

    def _cut_half_line(self) -> None:
        """The rest of a batch that was never answered."""
        size = os.fstat(self._batches).st_size
        first = max(0, size - _LONGEST_LINE)
        end = os.pread(self._batches, size - first, first)
        os.ftruncate(self._batches, first + end.rfind(b"\n") + 1)


def serve(port: int, receiver: Receiver) -> None:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            receiver.begin()
            body = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(random.random() * LONGEST_PAUSE_S)
            receiver.keep(self.headers["webhook-id"], body)
            time.sleep(random.random() * LONGEST_PAUSE_S)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(int(sys.argv[1]), Receiver(Path(sys.argv[2])))
