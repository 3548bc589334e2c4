"""Refusals in the provider's words: status, type, code and param as its documentation of errors gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Refusal(Exception):
    """`begun`: the operation had begun, so that an idempotency key keeps the answer."""

    status: int
    message: str
    code: str | None = None
    param: str | None = None
    type: str = "invalid_request_error"
    decline_code: str | None = None
    begun: bool = True

    def body(self, request_id: str) -> dict[str, Any]:
        """The JSON of the answer; members without a value are left out."""
        members = {
            "code": self.code,
            "decline_code": self.decline_code,
            "doc_url": self.code and f"https://stripe.com/docs/error-codes/{self.code.replace('_', '-')}",
            "message": self.message,
            "param": self.param,
            "request_log_url": f"https://dashboard.stripe.com/test/logs/{request_id}",
            "type": self.type,
        }
        return {"error": {name: value for name, value in members.items() if value is not None}}


def missing(param: str) -> Refusal:
    return Refusal(400, f"Missing required param: {param}.", "parameter_missing", param, begun=False)


def unknown(param: str) -> Refusal:
    return Refusal(400, f"Received unknown parameter: {param}", "parameter_unknown", param, begun=False)


def empty(param: str) -> Refusal:
    message = (
        f"You passed an empty string for '{param}'. We assume empty values are an attempt to unset a parameter; "
        f"however '{param}' cannot be unset. You should remove '{param}' from your request or supply a non-empty value."
    )
    return Refusal(400, message, "parameter_invalid_empty", param, begun=False)


def invalid(param: str | None, message: str, code: str | None = None) -> Refusal:
    return Refusal(400, message, code, param, begun=False)


def exclusive(*params: str) -> Refusal:
    message = f"You may only specify one of these parameters: {', '.join(params)}."
    return Refusal(400, message, None, params[0], begun=False)


def no_such(kind: str, id_: str, param: str, status: int = 400) -> Refusal:
    """An object that a path names (404) or a parameter (400)."""
    return Refusal(status, f"No such {kind}: '{id_}'", "resource_missing", param)


def declined() -> Refusal:
    return Refusal(402, "Your card was declined.", "card_declined", None, "card_error", "generic_decline")
