from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

from gateway.mail.models import OutgoingMail


def newest_mails_about(organization_id: UUID, things: Collection[UUID]) -> list[OutgoingMail]:
    """The newest message about each thing that has one."""
    rows = OutgoingMail.objects.filter(organization_id=organization_id, about__in=things).order_by("created_at", "id")
    return list({row.about: row for row in rows}.values())
