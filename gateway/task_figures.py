"""Figures of scheduled tasks, and the file that holds a worker's figures. Spec: contract.md 7 · docs/decisions/0076"""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, Literal

import structlog
from celery.signals import task_postrun, task_prerun, task_success

from gateway.lib.metrics.names import QUEUE_WAIT_SECONDS, SCHEDULE_LAST_RUN
from gateway.lib.metrics.process_file import ProcessFile

PUBLISHED_AT = "published_at"  # header of a task's message, in seconds since 1970
Role = Literal["worker", "shipping"]
log = structlog.get_logger(__name__)


class TaskFigures:
    """Connected in a worker before it has child processes: each of them writes a file of its own."""

    def __init__(self, folder: Path, role: Role, scheduled: Collection[str]) -> None:
        self._file, self._scheduled = ProcessFile(folder, role), scheduled

    def connect(self) -> None:
        task_prerun.connect(self._on_start, weak=False)
        task_success.connect(self._on_success, weak=False)
        task_postrun.connect(self._on_end, weak=False)

    def disconnect(self) -> None:
        task_prerun.disconnect(self._on_start)
        task_success.disconnect(self._on_success)
        task_postrun.disconnect(self._on_end)

    def _on_start(self, task: Any, **kwargs: object) -> None:
        published_at = getattr(task.request, PUBLISHED_AT, None)
        if isinstance(published_at, int | float):  # a release of before sends none
            QUEUE_WAIT_SECONDS.observe(max(0.0, time.time() - published_at))

    def _on_success(self, sender: Any, **kwargs: object) -> None:
        if sender.name in self._scheduled:
            SCHEDULE_LAST_RUN.set(time.time(), sender.name)

    def _on_end(self, **kwargs: object) -> None:
        try:
            self._file.write()
        except OSError as fault:  # the task itself has ended well
            log.warning("metrics not written", fault=fault.strerror)
