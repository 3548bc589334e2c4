"""Values of statements that are written in SQL."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import UUIDField

from gateway.lib.ids import first_log_id_at


def uuid_value(value: uuid.UUID) -> Any:
    """As the database stores it."""
    return UUIDField().get_db_prep_value(value, connection)


def first_id(moment: datetime) -> Any:
    """The lowest id of a log row of this moment or later."""
    return uuid_value(first_log_id_at(moment))
