"""Pure: the payment provider's signature over the body of a webhook. Spec: §5 · D90"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from gateway.lib import secrets as constant_time

# Seconds between the signature and now, both ways: a recorded request is worthless later, and none can be prepared.
TOLERANCE_S = 300
_SCHEME = "v1"
_MAX_DIGITS = 12
_MAX_HEADER = 4096  # characters; the provider sends a few hundred


def is_valid(header: str, body: bytes, *, secrets: Sequence[str], now_s: float) -> bool:
    """Whether one of the `v1` signatures of `Stripe-Signature` was made with one of `secrets`, at about this time."""
    signed_at, signatures = _parse(header)
    if signed_at is None or abs(now_s - int(signed_at)) > TOLERANCE_S:
        return False
    message = signed_at.encode() + b"." + body
    expected = [hmac.new(secret.encode(), message, hashlib.sha256).hexdigest().encode() for secret in secrets]
    # Every pair is compared, so that the time taken says nothing of which secret or signature it was.
    matches = [constant_time.equal(own, given) for own in expected for given in signatures]
    return any(matches)


def _parse(header: str) -> tuple[str | None, list[bytes]]:
    """(Seconds since the Unix epoch as they were signed, signatures of the one known scheme)."""
    if len(header) > _MAX_HEADER:
        return None, []
    pairs = [part.strip().partition("=") for part in header.split(",")]
    times = [value for name, _, value in pairs if name == "t"]
    signatures = [value.encode("utf-8", "surrogatepass") for name, _, value in pairs if name == _SCHEME]
    is_usable = len(times) == 1 and times[0].isascii() and times[0].isdigit() and len(times[0]) <= _MAX_DIGITS
    return times[0] if is_usable else None, signatures
