"""Pure: refusals of the services, with a sentence for the user. Interfaces turn them into answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gateway.lib.sentences import sentence


class DomainError(Exception):
    """A refusal: `code` in snake_case, `message` a sentence, `status` of HTTP, `fields` texts by field. Spec: D1"""

    code = "refused"
    message = sentence("This can’t be done.")
    status = 422

    headers: Mapping[str, str] = {}  # of the answer, such as Retry-After

    def __init__(self, message: str | None = None, *, fields: Mapping[str, Sequence[str]] | None = None) -> None:
        self.message = message or self.message
        self.fields = {name: list(texts) for name, texts in (fields or {}).items()}
        super().__init__(self.message)

    @property
    def sentences(self) -> str:
        """The texts of all fields; without fields, the message."""
        return " ".join(text for texts in self.fields.values() for text in texts) or self.message


class NotFound(DomainError):
    """Does not exist, or belongs to another organization: the answer is the same. Spec: D4"""

    code, message, status = "not_found", sentence("Not found. It may have been removed, or you don’t have access."), 404


class Forbidden(DomainError):
    code, message, status = "forbidden", sentence("Your role doesn’t allow this."), 403


class Invalid(DomainError):
    """A value is missing, of the wrong type, or malformed. Spec: D3"""

    code, message, status = "invalid", sentence("Check the marked fields."), 400


class Conflict(DomainError):
    """The current state does not allow the change. Spec: D8"""

    code, message, status = "conflict", sentence("Already done."), 409


class MethodNotAllowed(DomainError):
    """The route has no such method. `allowed` is the Allow header. Spec: D30"""

    code, message, status = "method_not_allowed", sentence("That method is not allowed here."), 405

    def __init__(self, allowed: str) -> None:
        super().__init__()
        self.headers = {"Allow": allowed}
