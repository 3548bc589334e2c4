"""The Celery application of worker and beat."""

from __future__ import annotations

import gc
import os
import time
from typing import Any

import structlog
from celery import Celery
from celery.signals import before_task_publish, celeryd_after_setup, setup_logging, worker_before_create_process

from gateway import queue_transport
from gateway.lib import build_info
from gateway.lib.queues import SHIPPING_NICENESS, SHIPPING_QUEUE
from gateway.task_figures import PUBLISHED_AT, Role, TaskFigures

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

log = structlog.get_logger(__name__)
queue_transport.use()
app = Celery("gateway")
app.config_from_object("gateway.settings.workers", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect  # type: ignore[untyped-decorator]
def _keep_django_logging(**kwargs: object) -> None:
    # Celery would install its own handlers, which do not mask secrets.
    from logging.config import dictConfig

    from django.conf import settings

    dictConfig(settings.LOGGING)


@before_task_publish.connect  # type: ignore[untyped-decorator]
def _note_time(headers: dict[str, Any], **kwargs: object) -> None:
    headers[PUBLISHED_AT] = time.time()


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def _begin_figures(instance: Any, **kwargs: object) -> None:
    from django.conf import settings

    log.info("started", **build_info.current().labels())
    if settings.METRICS_ADDRESS:
        scheduled = {entry["task"] for entry in app.conf.beat_schedule.values()}
        TaskFigures(settings.METRICS_FOLDER, _role_of(instance), scheduled).connect()


def _role_of(instance: Any) -> Role:
    return "shipping" if SHIPPING_QUEUE in instance.app.amqp.queues.consume_from else "worker"


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def _tell_keys(instance: Any, **kwargs: object) -> None:
    from gateway.keys.worker_presence import WorkerPresence

    WorkerPresence(_role_of(instance)).connect()


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def _make_way_for_calls(instance: Any, **kwargs: object) -> None:
    if _role_of(instance) == "shipping":
        os.nice(SHIPPING_NICENESS)


@worker_before_create_process.connect  # type: ignore[untyped-decorator]
def _share_memory_with_children(**kwargs: object) -> None:
    # A collection in a child would write to the pages of every object that it shares with its parent.
    gc.freeze()
