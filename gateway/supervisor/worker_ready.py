"""Loaded by the worker: creates a file once it takes tasks, since a worker has no port to ask."""

from __future__ import annotations

import os
from pathlib import Path

from celery.signals import worker_ready

from gateway.supervisor.child_environment import READY_FILE_VARIABLE


def write_ready_file(**_: object) -> None:
    Path(os.environ[READY_FILE_VARIABLE]).touch(mode=0o600)


worker_ready.connect(write_ready_file)
