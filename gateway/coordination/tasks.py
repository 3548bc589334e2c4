"""Scheduled work of the coordination: bumps that no web process has relayed."""

from __future__ import annotations

from celery import shared_task

from gateway.coordination import outbox, registry
from gateway.coordination.store import CoordinationUnavailable


@shared_task(name="coordination.relay_outbox")  # type: ignore[untyped-decorator]
def relay_outbox() -> None:
    """Send the epoch bumps that are still in the outbox. While Redis is away they stay there for the next round."""
    if not registry.uses_outbox():
        return
    store = registry.current()
    try:
        outbox.relay(store)
    except CoordinationUnavailable:
        return
