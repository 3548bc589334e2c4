"""Reads of the outbox about one organization."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db.models import Count

from gateway.mail.kinds import MailKind
from gateway.mail.models import OutgoingMail


def counts_since(kind: MailKind, organization_id: UUID, moment: datetime) -> dict[str, int]:
    """Address to the number of its messages of the kind about the organization."""
    rows = OutgoingMail.objects.filter(organization_id=organization_id, kind=kind.name, created_at__gt=moment)
    return dict(rows.values_list("address").annotate(Count("pk")))


def newest_mails_about(organization_id: UUID, things: Collection[UUID]) -> list[OutgoingMail]:
    """The newest message about each thing that has one."""
    rows = OutgoingMail.objects.filter(organization_id=organization_id, about__in=things).order_by("created_at", "id")
    return list({row.about: row for row in rows}.values())
