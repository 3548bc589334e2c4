"""Pure: what a service may refuse, in words a person can act on. Interfaces translate; services only raise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class DomainError(Exception):
    """A refusal. `code` is the snake_case name in answers, `message` one sentence, `status` its HTTP status.

    Spec: D1
    """

    code = "refused"
    message = "This is not possible."
    status = 422

    headers: Mapping[str, str] = {}  # what the answer says besides

    def __init__(self, message: str | None = None, *, fields: Mapping[str, Sequence[str]] | None = None) -> None:
        self.message = message or self.message
        self.fields = {name: list(texts) for name, texts in (fields or {}).items()}
        super().__init__(self.message)


class NotFound(DomainError):
    """No such thing, or it belongs to another organization: the two look the same. Spec: D4"""

    code, message, status = "not_found", "There is nothing here, or it belongs to another organization.", 404


class Forbidden(DomainError):
    """The role is too low."""

    code, message, status = "forbidden", "Your role does not allow this.", 403


class Invalid(DomainError):
    """A value is missing, mistyped or malformed. Spec: D3"""

    code, message, status = "invalid", "Check the marked fields.", 400


class Conflict(DomainError):
    """The state of things does not allow it now. Spec: D8"""

    code, message, status = "conflict", "This is already so.", 409
