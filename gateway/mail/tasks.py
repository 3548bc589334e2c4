"""Scheduled tasks."""

from __future__ import annotations

from celery import shared_task

from gateway.mail.retention import remove_old
from gateway.mail.sending import send_waiting


# Acknowledged early: claims in the database do what a repeated message would.
@shared_task(name="mail.send_waiting", acks_late=False)  # type: ignore[untyped-decorator]
def send_waiting_mail() -> int:
    return send_waiting()


@shared_task(name="mail.remove_old")  # type: ignore[untyped-decorator]
def remove_old_mail() -> int:
    return remove_old()
