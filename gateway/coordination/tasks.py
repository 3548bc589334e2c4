from __future__ import annotations

from celery import shared_task

from gateway.coordination import backend, outbox
from gateway.coordination.store import CoordinationUnavailable


@shared_task(name="coordination.relay_outbox")  # type: ignore[untyped-decorator]
def relay_outbox() -> None:
    """Relay the epoch bumps that no web process has relayed."""
    if not backend.uses_outbox():
        return
    store = backend.current()
    try:
        outbox.relay(store)
    except CoordinationUnavailable:  # the rows stay for the next round
        return
