"""The presence of a worker's processes, told between their tasks."""

from __future__ import annotations

from typing import Any

import structlog
from celery.signals import task_prerun, worker_process_shutdown, worker_shutdown
from django.db import DatabaseError, InterfaceError

from gateway.keys.presence import Presence

log = structlog.get_logger(__name__)


class WorkerPresence:
    """Connected in a worker before it has child processes; each of them is present by itself."""

    def __init__(self, role: str) -> None:
        self._presence = Presence(role)

    def connect(self) -> None:
        task_prerun.connect(self.note, weak=False)
        # The second is that of a pool of threads, whose only process is the worker itself.
        for end in (worker_process_shutdown, worker_shutdown):
            end.connect(self.leave, weak=False)

    def disconnect(self) -> None:
        task_prerun.disconnect(self.note)
        for end in (worker_process_shutdown, worker_shutdown):
            end.disconnect(self.leave)

    def note(self, **kwargs: Any) -> None:
        if self._presence.is_due():
            self._attempt("key_holder_not_noted", self._presence.note)

    def leave(self, **kwargs: Any) -> None:
        self._attempt("key_holder_not_removed", self._presence.leave)

    def _attempt(self, failure: str, work: Any) -> None:
        try:
            work()
        except (DatabaseError, InterfaceError) as fault:  # the task itself says more
            log.warning(failure, fault=type(fault).__name__)
