"""Work beside the calls: the worker and its schedule, queues, streams of the logs, the journal of ends."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db.models import Min

from audit.models import LogDestination, StreamCursor
from audit.seals import CURSOR as SEALS
from audit.shipping_models import DestinationStatus
from gateway.coordination.models import PendingBump
from gateway.doctor import redis_checks
from gateway.doctor.verdict import Finding, error, ok, warning
from gateway.lib import clock
from gateway.lib.queues import SHIPPING_QUEUE
from gateway.mail.models import MailState, OutgoingMail
from gateway.recovery.restore import MARK
from orgs.models import AlertMessage, Organization

# The schedule seals each minute.
SILENT = timedelta(minutes=5)
LONG_QUEUE = 1_000
LATE_BUMP = timedelta(minutes=1)
LATE_MESSAGE = timedelta(minutes=15)


def worker() -> Sequence[Finding]:
    """Each minute the worker seals the logs: the last time is that of its schedule."""
    last = StreamCursor.objects.filter(name=SEALS).aggregate(last=Min("reached_at"))["last"]
    first = Organization.objects.aggregate(first=Min("created_at"))["first"]
    return [judged_worker(last or first, has_run=last is not None, now=clock.now(), is_embedded=settings.EMBEDDED)]


def judged_worker(since: datetime | None, *, has_run: bool, now: datetime, is_embedded: bool) -> Finding:
    if since is None or now - since < SILENT:
        return ok("The schedule runs." if has_run else "The schedule has nothing to do yet.")
    # An embedded installation may simply not be started.
    say = warning if is_embedded else error
    minutes = int((now - since).total_seconds() // 60)
    if not has_run:
        return say(f"The schedule has never run in {minutes} minutes. Start worker and beat.")
    return say(f"The schedule last ran {minutes} minutes ago. Look at worker and beat.")


def queues() -> Sequence[Finding]:
    """Messages that wait for a worker."""
    from gateway.settings import workers

    if workers.QUEUE_REDIS_URL:
        prefix = str(workers.CELERY_BROKER_TRANSPORT_OPTIONS["global_keyprefix"])
        with closing(redis_checks.client(workers.QUEUE_REDIS_URL)) as server:
            names = (workers.CELERY_TASK_DEFAULT_QUEUE, SHIPPING_QUEUE)
            waiting = sum(int(server.llen(f"{prefix}{name}")) for name in names)  # type: ignore[arg-type]
    else:
        folder = settings.VAR / "queue"
        waiting = sum(1 for _ in folder.iterdir()) if folder.is_dir() else 0
    if waiting > LONG_QUEUE:
        return [warning(f"{waiting} messages wait for a worker. Start more of them, or look at their log.")]
    return [ok(f"{waiting} messages wait for a worker.")]


def outbox() -> Sequence[Finding]:
    """Revocations that Redis has not taken."""
    late = PendingBump.objects.filter(created_at__lt=clock.now() - LATE_BUMP).count()
    if late:
        return [error(f"{late} changes of rights have not reached Redis for a minute. Look at Redis and the worker.")]
    return [ok("Every change of rights has reached the processes.")]


def messages() -> Sequence[Finding]:
    """E-mail and alerts that should have left."""
    due = clock.now() - LATE_MESSAGE
    mail = OutgoingMail.objects.filter(state=MailState.WAITING, created_at__lt=due).count()
    alerts = AlertMessage.objects.filter(webhook=AlertMessage.Delivery.WAITING, created_at__lt=due).count()
    found = []
    if mail:
        late = f"{mail} emails have waited for more than 15 minutes."
        found.append(warning(f"{late} Look at the mail server, EMAIL_URL and the worker of the shipping queue."))
    if alerts:
        found.append(warning(f"{alerts} alerts have waited for their webhooks for more than 15 minutes."))
    return found or [ok("No email or alert has waited for long.")]


def log_shipping() -> Sequence[Finding]:
    enabled = LogDestination.objects.filter(enabled=True)
    failing = enabled.filter(status=DestinationStatus.FAILING).count()
    if failing:
        return [warning(f"{failing} log destinations are failing. shipping_status lists them.")]
    return [ok(f"{enabled.count()} log destinations, none of them is failing.")]


def revocation_journal() -> Sequence[Finding]:
    path: Path | None = settings.REVOCATION_JOURNAL
    if path is None:
        return [warning("REVOCATION_JOURNAL is off: after a restore every session, token and key has to end.")]
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
    except OSError as fault:
        return [
            error(f"The journal of ends {path} cannot be written ({fault.strerror}): a restore lets ended keys in.")
        ]
    return [ok(f"The journal of ends is {path}.")]


def restored() -> Sequence[Finding]:
    """A restored installation waits for `after_restore`."""
    try:
        moment = json.loads((settings.VAR / MARK).read_text())["restored_to"]
    except FileNotFoundError:
        return []
    return [
        error(
            f"This installation was restored to {moment}, and what ended since works again. Run after_restore --at"
            f" {moment} --journal FILE."
        )
    ]
