"""Redeem codes: a leftover of the time before there was one plan. They are recognized and give nothing more."""

from __future__ import annotations

from typing import NoReturn

from django.conf import settings

from billing.errors import CodeRequired, InvalidCode, PlanAlreadyActive
from gateway.lib import secrets


def redeem_code(*, code: str) -> NoReturn:
    """Always refuses, in the words that fit the code. Codes are configured as their SHA-256 only.

    Raises: CodeRequired, InvalidCode, PlanAlreadyActive.   Spec: §4.4 · D94
    """
    trimmed = code.strip()
    if not trimmed:
        raise CodeRequired(fields={"code": ["Enter a code."]})
    digest = secrets.sha256(trimmed)
    matches = [secrets.equal(digest, known) for known in settings.LEGACY_CODE_SHA256]  # all of them, every time
    if any(matches):
        raise PlanAlreadyActive
    raise InvalidCode
