"""Idempotency keys: the first answer is kept for a day, and given again to the same request."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.fakes.payment_provider.errors import Refusal

KEPT_S = 86_400
LONGEST_KEY = 255
_MISMATCH = (
    "Keys for idempotent requests can only be used with the same parameters they were first used with. "
    "Try using a key other than '{key}' if you meant to execute a different request."
)
_IN_USE = (
    "There is currently another in-progress request using this Idempotent Key (that probably means you submitted "
    "twice, and the other request is still going through): {key}. Please try again later."
)


@dataclass
class Kept:
    """`answer`: status and body, or None while the request is being answered."""

    request: tuple[str, str, str]
    at: int
    request_id: str
    answer: tuple[int, bytes] | None = None


@dataclass
class IdempotencyKeys:
    _kept: dict[str, Kept] = field(default_factory=dict)

    def begin(self, key: str, request: tuple[str, str, str], now: int, request_id: str) -> Kept | None:
        """The kept answer of the same request; None where there is none and the key is now in use. Raises: Refusal."""
        if not 1 <= len(key) <= LONGEST_KEY:
            message = f"Idempotency keys have at most {LONGEST_KEY} characters."
            raise Refusal(400, message, type="idempotency_error", begun=False)
        kept = self._kept.get(key)
        if kept is not None and now - kept.at >= KEPT_S:
            kept = None
        if kept is None:
            self._kept[key] = Kept(request, now, request_id)
            return None
        if kept.request != request:
            raise Refusal(400, _MISMATCH.format(key=key), type="idempotency_error", begun=False)
        if kept.answer is None:
            message = _IN_USE.format(key=key)
            raise Refusal(409, message, "idempotency_key_in_use", type="idempotency_error", begun=False)
        return kept

    def finish(self, key: str, answer: tuple[int, bytes]) -> None:
        self._kept[key].answer = answer

    def forget(self, key: str) -> None:
        """The request was refused before anything was done."""
        self._kept.pop(key, None)
