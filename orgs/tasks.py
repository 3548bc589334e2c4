"""Scheduled tasks."""

from __future__ import annotations

from celery import shared_task

from orgs.models import ServerAccess
from orgs.services.invitation_mail import remind
from orgs.services.open_requests import remove_old_decisions
from orgs.services.server_access_ends import remove_ended_everywhere


@shared_task(name="orgs.remove_ended_access")  # type: ignore[untyped-decorator]
def remove_ended_access() -> int:
    """Access ends by itself: the task removes its rows and writes the log."""
    return remove_ended_everywhere(ServerAccess.objects.select_related("membership__user", "team"), "organization_id")


@shared_task(name="orgs.remove_old_decisions")  # type: ignore[untyped-decorator]
def remove_decided_access_requests() -> int:
    return remove_old_decisions()


@shared_task(name="orgs.remind_of_invitations")  # type: ignore[untyped-decorator]
def remind_of_invitations() -> int:
    """Returns the number of reminders; each invitation has one, two days before its end."""
    return remind()
