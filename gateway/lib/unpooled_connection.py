"""A connection to PostgreSQL beside the pool and beside Django's own of the thread."""

from __future__ import annotations

import copy
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.utils import load_backend


def unpooled(
    connection: BaseDatabaseWrapper, name: str, wrapper: type[BaseDatabaseWrapper] | None = None
) -> BaseDatabaseWrapper:
    """It is made with its first use. `name`: as PostgreSQL shows it. The caller closes it.

    `wrapper`: a class in place of the back end's own, such as one that bounds each wait for the server.
    """
    config: dict[str, Any] = copy.deepcopy(dict(connection.settings_dict))
    config["OPTIONS"].pop("pool", None)
    config["OPTIONS"]["application_name"] = name
    made_of = wrapper or load_backend(config["ENGINE"]).DatabaseWrapper
    return made_of(config, connection.alias)
