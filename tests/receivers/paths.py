"""A value deep in an event."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any


def values_at(value: Any, path: Sequence[str]) -> list[Any]:
    """Every value at `path`, none where it leads nowhere."""
    if isinstance(value, list):
        return [found for item in value for found in values_at(item, path)]
    if not path:
        return [value]
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return []
    if isinstance(value, dict) and path[0] in value:
        return values_at(value[path[0]], path[1:])
    return []
