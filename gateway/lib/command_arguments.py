"""Arguments of management commands."""

from __future__ import annotations

import uuid

from django.core.management.base import CommandError

from gateway.lib.ids import parse_id


def organization_id(text: str | None) -> uuid.UUID | None:
    """None without a text. Raises: CommandError."""
    org_id = parse_id(text)
    if text and org_id is None:
        raise CommandError(f"{text} isn't the id of an organization.")
    return org_id
