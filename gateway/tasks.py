"""Celery tasks of the shared kernel."""

from __future__ import annotations

from celery import shared_task

from gateway.web import idempotency
from gateway.web.sessions import SessionStore


@shared_task(name="gateway.remove_expired_sessions")  # type: ignore[untyped-decorator]
def remove_expired_sessions() -> None:
    # Each visit to the sign-in page begins a session, whether the person signs in or not.
    SessionStore.clear_expired()


@shared_task(name="gateway.remove_idempotency_records")  # type: ignore[untyped-decorator]
def remove_idempotency_records() -> None:
    """Answers to requests with an Idempotency-Key are kept for a day."""
    idempotency.delete_expired()
