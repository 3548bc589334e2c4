"""One-time form idempotency keys: a double click, reload or back button must not create a second secret."""

from __future__ import annotations

from django.core import signing
from django.http import HttpRequest

from gateway.coordination import backend
from gateway.coordination.rules import Rule
from gateway.lib import secrets

FIELD = "form_key"
# Seconds. The used mark in the coordination store lives as long as the key.
_MAX_AGE_S = 12 * 3600
_RULE = Rule("form", limit=1, window_s=_MAX_AGE_S)
_SALT = "gateway.web.form_idempotency"


def new_key(request: HttpRequest) -> str:
    return signing.dumps([str(request.user.pk), secrets.random_base62(16)], salt=_SALT)


def claim_key(request: HttpRequest) -> bool:
    """Mark the form's key as used. False if it is invalid, expired, of another person or already used."""
    key = request.POST.get(FIELD, "")
    try:
        owner, nonce = signing.loads(key, salt=_SALT, max_age=_MAX_AGE_S)
    except (signing.BadSignature, ValueError):
        return False
    return owner == str(request.user.pk) and backend.current().hit(_RULE, f"{owner}:{nonce}").allowed
