"""Housekeeping of what belongs to no app."""

from __future__ import annotations

from celery import shared_task

from gateway.web import idempotency
from gateway.web.sessions import SessionStore


@shared_task(name="gateway.remove_expired_sessions")  # type: ignore[untyped-decorator]
def remove_expired_sessions() -> None:
    """Remove sessions that have expired: every visit to the sign-in begins one, whether somebody signs in or not."""
    SessionStore.clear_expired()


@shared_task(name="gateway.remove_remembered_answers")  # type: ignore[untyped-decorator]
def remove_remembered_answers() -> None:
    """Remove answers to requests with an Idempotency-Key that are older than a day: nobody may ask for them again."""
    idempotency.forget_old()
