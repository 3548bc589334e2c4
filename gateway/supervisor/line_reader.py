"""Lines from a pipe, read without ever waiting for one."""

from __future__ import annotations

import os
from typing import IO


class LineReader:
    """Hands out the whole lines that have come; `file` can be waited for."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self._rest = b""
        os.set_blocking(file.fileno(), False)

    def read(self) -> list[str] | None:
        """The lines since the last call, or None once the writer has closed its end."""
        try:
            chunk = os.read(self.file.fileno(), 65_536)
        except BlockingIOError:
            return []
        if not chunk:
            return None
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        return [line.decode("utf-8", "replace") for line in lines]
