"""Messages that have ended, and files of the embedded default, are removed after MAIL_KEPT_DAYS."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings

from gateway.lib import clock
from gateway.mail.models import MailState, OutgoingMail


def remove_old() -> int:
    """Returns the number of removed messages; those that wait stay."""
    before = clock.now() - timedelta(days=settings.MAIL_KEPT_DAYS)
    removed, _ = OutgoingMail.objects.filter(created_at__lt=before).exclude(state=MailState.WAITING).delete()
    if settings.MAIL_DELIVERY == "files":
        _remove_old_files(Path(settings.EMAIL_FILE_PATH), before)
    return removed


def _remove_old_files(folder: Path, before: datetime) -> None:
    for file in folder.glob("*.log"):
        if file.stat().st_mtime < before.timestamp():
            file.unlink(missing_ok=True)
