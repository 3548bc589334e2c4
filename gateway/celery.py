"""The Celery application of worker and beat."""

from __future__ import annotations

import os

from celery import Celery
from celery.signals import setup_logging

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
