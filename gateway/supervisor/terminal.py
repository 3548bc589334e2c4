"""Terminal output: aligned lines, coloured only on a terminal that shows colours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TextIO

LABEL_WIDTH = 16


class Terminal:
    """Writes to one stream and flushes each line, so that a pipe shows it at once."""

    def __init__(self, stream: TextIO, environ: Mapping[str, str] = os.environ) -> None:
        self._stream = stream
        self._is_coloured = stream.isatty() and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"

    def line(self, text: str = "") -> None:
        self._stream.write(text + "\n")
        self._stream.flush()

    def title(self, text: str) -> None:
        self.line(self._styled("1", text))

    def step(self, label: str, detail: str, seconds: float | None = None) -> None:
        """A finished step with its result and duration."""
        took = f"  ({seconds:.1f} s)" if seconds is not None and seconds >= 0.1 else ""
        self.line(f"  {label:<{LABEL_WIDTH}}{detail}{took}")

    def note(self, text: str) -> None:
        self.line(self._styled("33", text))

    def problem(self, text: str) -> None:
        self.line(self._styled("31", text))

    def _styled(self, code: str, text: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._is_coloured else text
