"""Pure: what becomes of the metadata that a client registers with. Spec: RFC 7591 · D116 · protocol.md B.3

Clients ask for what they have heard that servers want. Nobody is refused for that: every client becomes a public one
with the code grant, and is told so in the answer, which it then keeps to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gateway.lib.text import NAME_MAX_CHARACTERS, clean_name
from oauth_ext import redirect_uris, scopes

INVALID_REDIRECT_URI = "invalid_redirect_uri"
INVALID_CLIENT_METADATA = "invalid_client_metadata"
MAX_REDIRECT_URIS = 10
GRANT_TYPES = ("authorization_code", "refresh_token")
RESPONSE_TYPES = ("code",)
AUTH_METHOD = "none"
_APPLICATION_TYPES = frozenset({"native", "web"})


class BadMetadata(ValueError):
    """The registration is refused; `error` is RFC 7591's name for it, `reason` a sentence that repeats nothing."""

    def __init__(self, error: str, reason: str) -> None:
        super().__init__(reason)
        self.error, self.reason = error, reason


@dataclass(frozen=True, slots=True)
class Registration:
    """What is registered. `name` may be empty: then the client did not say, or said nothing that can be shown."""

    name: str
    redirect_uris: tuple[str, ...]
    application_type: str
    scope: str

    def metadata(self) -> dict[str, object]:
        """The client as RFC 7591 3.2.1 answers it, without its id. No member is null, none is secret."""
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
    """The registration that `document`, a parsed JSON body, amounts to. Members that are not ours are ignored.

    `existing` keeps those of the scopes it is given that exist.
    Raises: BadMetadata.
    """
    if not isinstance(document, Mapping):
        raise BadMetadata(INVALID_CLIENT_METADATA, "The body must be a JSON object.")
    application_type = _text(document, "application_type")
    return Registration(
        name=_name(_text(document, "client_name")),
        redirect_uris=_redirect_uris(document.get("redirect_uris")),
        application_type=application_type if application_type in _APPLICATION_TYPES else "native",
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
    """The name as it can be shown: what would reorder, hide or overflow is no reason to lock a client out."""
    try:
        return clean_name(sent[:NAME_MAX_CHARACTERS], allow_empty=True)
    except ValueError:
        return ""
