"""The organizations of a table, found along its index."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

from django.db.models import Model


def organizations_of(model: type[Model]) -> Iterator[uuid.UUID]:
    """Organizations with rows of `model`, deleted ones too; one step along an index that begins with `org_id` each."""
    found = model._default_manager.order_by("org_id").values_list("org_id", flat=True)
    org_id = found.first()
    while org_id is not None:
        yield org_id
        org_id = found.filter(org_id__gt=org_id).first()
