"""Pure: turns a client's registration metadata into a registration. Spec: RFC 7591 · D116 · protocol.md B.3

Unsupported metadata is replaced, not refused: every client becomes a public one with the code grant, and the response
states what was registered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.lib.text import NAME_MAX_CHARACTERS, clean_name
from oauth_ext import redirect_uris, scopes

INVALID_REDIRECT_URI = "invalid_redirect_uri"
INVALID_CLIENT_METADATA = "invalid_client_metadata"
MAX_REDIRECT_URIS = 10  # D116
GRANT_TYPES = ("authorization_code", "refresh_token")
RESPONSE_TYPES = ("code",)
AUTH_METHOD = "none"
_APPLICATION_TYPES = frozenset({"native", "web"})


class BadMetadata(ValueError):
    """The registration is refused. `error` is RFC 7591's code; `reason` is a sentence that never repeats the body."""

    def __init__(self, error: str, reason: str) -> None:
        super().__init__(reason)
        self.error, self.reason = error, reason


@dataclass(frozen=True, slots=True)
class Registration:
    name: str  # empty when the client sent none, or none that can be shown
    redirect_uris: tuple[str, ...]
    application_type: str
    scope: str

    def metadata(self) -> dict[str, object]:
        """The RFC 7591 3.2.1 response without the client id: no member is null or secret."""
        named = {"client_name": self.name} if self.name else {}
        return {
            **named,
            "redirect_uris": list(self.redirect_uris),
            "grant_types": list(GRANT_TYPES),
            "response_types": list(RESPONSE_TYPES),
            "token_endpoint_auth_method": AUTH_METHOD,
            "application_type": self.application_type,
            "scope": self.scope,
        }


def read(document: object, existing: Callable[[Sequence[str]], list[str]]) -> Registration:
    """Reads a parsed JSON body; unknown members are ignored. Raises: BadMetadata."""
    if not isinstance(document, Mapping):
        raise BadMetadata(INVALID_CLIENT_METADATA, "The body must be a JSON object.")
    application_type = _text(document, "application_type")
    return Registration(
        name=_name(_text(document, "client_name")),
        redirect_uris=_redirect_uris(document.get("redirect_uris")),
        application_type=application_type if application_type in _APPLICATION_TYPES else "native",
        # `existing` drops scopes that do not exist.
        scope=" ".join(existing(_text(document, "scope").split()[: scopes.MAX_SCOPES])) or scopes.ALL,
    )


def _text(document: Mapping[str, object], member: str) -> str:
    value = document.get(member)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BadMetadata(INVALID_CLIENT_METADATA, f"{member} must be a string.")
    return value


def _redirect_uris(sent: object) -> tuple[str, ...]:
    if not isinstance(sent, list) or not sent:
        raise BadMetadata(INVALID_REDIRECT_URI, "redirect_uris must name at least one address.")
    if len(sent) > MAX_REDIRECT_URIS:
        raise BadMetadata(INVALID_REDIRECT_URI, f"redirect_uris must name at most {MAX_REDIRECT_URIS} addresses.")
    try:
        return tuple(dict.fromkeys(redirect_uris.check(uri) for uri in sent))
    except redirect_uris.BadRedirectUri as fault:
        raise BadMetadata(INVALID_REDIRECT_URI, fault.reason) from None


def _name(sent: str) -> str:
    try:
        return clean_name(sent[:NAME_MAX_CHARACTERS], allow_empty=True)
    except ValueError:
        # A name that would reorder, hide or overflow text is dropped; the client may still register.
        return ""
