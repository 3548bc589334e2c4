"""A connection to PostgreSQL beside the pool and beside Django's own of the thread."""

from __future__ import annotations

import copy
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend


def unpooled(connection: BaseDatabaseWrapper, name: str) -> BaseDatabaseWrapper:
    """It is made with its first use. `name`: as PostgreSQL shows it. The caller closes it."""
    config: dict[str, Any] = copy.deepcopy(dict(connection.settings_dict))
    config["OPTIONS"].pop("pool", None)
    config["OPTIONS"]["application_name"] = name
    made: BaseDatabaseWrapper = load_backend(config["ENGINE"]).DatabaseWrapper(config, connection.alias)
    return made
