"""Numbered boot checks. Errors that a setting shows by itself are raised earlier, in gateway.settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core import checks


@checks.register()
def coordination(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    # Processes on several hosts need Redis; on one host the SQLite file is enough.
    if settings.REDIS_URL or settings.EMBEDDED:
        return []
    return [
        checks.Warning(
            "REDIS_URL is not set: limits and revocations are shared by the processes of this host only.",
            hint="Set REDIS_URL before you run a second host.",
            id="gateway.W001",
        )
    ]


@checks.register()
def extra_catalog(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    if settings.VENDOR_CATALOG and not Path(settings.VENDOR_CATALOG).is_file():
        return [checks.Error("VENDOR_CATALOG names no readable file.", id="gateway.E001")]
    return []
