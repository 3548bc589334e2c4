"""Pure: the client id and secret of a request, and the method they came by. Spec: RFC 6749 2.3.1 · D125"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass, field
from urllib.parse import unquote

BASIC = "client_secret_basic"
POST = "client_secret_post"
NONE = "none"


class BadClientAuthentication(ValueError):
    """The request authenticates in two ways at once; `reason` is a sentence without the credentials."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Presented:
    """Both texts are empty when the method carried nothing usable."""

    method: str
    client_id: str
    client_secret: str = field(repr=False)


def presented(authorization: str | None, client_id: str, client_secret: str) -> Presented:
    """Raises: BadClientAuthentication when the form holds a secret, or another client's id, besides a Basic header."""
    scheme, _, encoded = (authorization or "").partition(" ")
    if scheme.lower() != "basic":
        return Presented(POST, client_id, client_secret)
    if client_secret:
        raise BadClientAuthentication("Use either HTTP Basic or client_secret, not both.")
    found = _decode(encoded.strip())
    if client_id and client_id != found.client_id:
        raise BadClientAuthentication("client_id differs from the one in the Authorization header.")
    return found


def used_basic(authorization: str | None) -> bool:
    # A malformed Basic header counts too.
    return (authorization or "").partition(" ")[0].lower() == "basic"


def _decode(encoded: str) -> Presented:
    try:
        text = base64.b64decode(encoded, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return Presented(BASIC, "", "")
    client_id, _, client_secret = text.partition(":")
    # Harmless for clients that do not encode: our ids and secrets hold no percent sign.
    client_id, client_secret = unquote(client_id), unquote(client_secret)
    if not all(part.isascii() and part.isprintable() for part in (client_id, client_secret)):
        return Presented(BASIC, "", "")
    return Presented(BASIC, client_id, client_secret)
