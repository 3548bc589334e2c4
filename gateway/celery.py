"""The Celery application of worker and beat."""

from __future__ import annotations

import gc
import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_after_setup, setup_logging, worker_before_create_process

from gateway.lib.queues import SHIPPING_NICENESS, SHIPPING_QUEUE

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gateway.settings")

app = Celery("gateway")
app.config_from_object("gateway.settings.workers", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect  # type: ignore[untyped-decorator]
def _keep_django_logging(**kwargs: object) -> None:
    # Celery would install its own handlers, which do not mask secrets.
    from logging.config import dictConfig

    from django.conf import settings

    dictConfig(settings.LOGGING)


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def _make_way_for_calls(instance: Any, **kwargs: object) -> None:
    if SHIPPING_QUEUE in instance.app.amqp.queues.consume_from:
        os.nice(SHIPPING_NICENESS)


@worker_before_create_process.connect  # type: ignore[untyped-decorator]
def _share_memory_with_children(**kwargs: object) -> None:
    # A collection in a child would write to the pages of every object that it shares with its parent.
    gc.freeze()
