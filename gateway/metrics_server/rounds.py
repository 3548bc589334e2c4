"""Figures that are read in rounds, beside the scrapes, which never wait for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import structlog
from prometheus_client.core import Metric

EVERY_S = 15.0
# The largest share of the time that reading may take: a long read is followed by a longer pause.
BUSY_SHARE = 0.1
Read = Callable[[], list[Metric]]
log = structlog.get_logger(__name__)


class Rounds:
    """The figures of the last round; none after a failed one, for those of before would look like those of now."""

    def __init__(self, name: str, read: Read, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._name, self._read, self._monotonic = name, read, monotonic
        self._metrics: list[Metric] = []
        self._ended = threading.Event()

    def collect(self) -> Iterator[Metric]:
        yield from self._metrics

    def start(self) -> None:
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def read(self) -> None:
        """One round."""
        try:
            self._metrics = self._read()
        except Exception:
            log.exception("metrics.not_read", figures=self._name)
            self._metrics = []

    def _run(self) -> None:
        pause_s = 0.0
        while not self._ended.wait(pause_s):
            began_s = self._monotonic()
            self.read()
            pause_s = max(EVERY_S, (self._monotonic() - began_s) / BUSY_SHARE)
