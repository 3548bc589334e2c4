"""Non-blocking line reader for a pipe."""

from __future__ import annotations

import os
from typing import IO


class LineReader:
    """Returns the complete lines received so far; `file` can be passed to `select`."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._rest = b""
        os.set_blocking(file.fileno(), False)

    def read(self) -> list[str] | None:
        """Lines since the last call; None once the writer has closed the pipe."""
        try:
            chunk = os.read(self.file.fileno(), 65_536)
        except BlockingIOError:
            return []
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]
