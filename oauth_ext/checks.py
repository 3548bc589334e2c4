"""Boot checks of this app's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from oauth_ext.jwt import key_material


@register()
def signing_keys(app_configs: Sequence[Any] | None, **kwargs: Any) -> list[CheckMessage]:
    """TOKEN_SIGNING_KEYS, if set, must hold P-256 keys. Spec: contract.md 5"""
    if not settings.TOKEN_SIGNING_KEYS:
        return []
    try:
        key_material.parse_setting(settings.TOKEN_SIGNING_KEYS)
    except ValueError as fault:
        hint = "Leave it unset to keep the keys in the database, or print a value with manage.py rotate_signing_key."
        return [Error(f"TOKEN_SIGNING_KEYS cannot be read: {fault}.", hint=hint, id="oauth_ext.E001")]
    return []
