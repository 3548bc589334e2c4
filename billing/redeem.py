from __future__ import annotations

from typing import NoReturn

from django.conf import settings

from billing.errors import CodeRequired, InvalidCode, PlanAlreadyActive
from gateway.lib import secrets
from gateway.lib.sentences import sentence


def redeem_code(*, code: str) -> NoReturn:
    """Raises: CodeRequired, InvalidCode, PlanAlreadyActive. Spec: §4.4 · D94"""
    trimmed = code.strip()
    if not trimmed:
        raise CodeRequired(fields={"code": [sentence("Enter a code.")]})
    # Settings hold the codes as SHA-256 only.
    digest = secrets.sha256(trimmed)
    # All digests are compared every time, so that the time taken does not depend on the code.
    matches = [secrets.equal(digest, known) for known in settings.LEGACY_CODE_SHA256]
    if any(matches):
        raise PlanAlreadyActive
    raise InvalidCode
