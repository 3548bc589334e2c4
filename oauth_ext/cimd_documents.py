"""Pure: client ID metadata documents (CIMD): their addresses, their content and their lifetime.

Spec: D117 · protocol.md B.10 · draft-ietf-oauth-client-id-metadata-document
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from oauth_ext import registration
from oauth_ext.registration import INVALID_CLIENT_METADATA, BadMetadata, Registration

MAX_CHARACTERS = 255  # of the address, which becomes the client id
MIN_AGE_S = 300  # bounds how often one document is fetched
MAX_AGE_S = 86_400  # bounds how long one copy is used

_PLAIN = re.compile(r"https://[a-z0-9.-]+(?::[0-9]{1,5})?/[A-Za-z0-9\-._~/?&=%+:@!$'(),;]+")
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=([0-9]{1,9})(?:$|[\s,;])", re.IGNORECASE)


def is_document_address(client_id: str) -> bool:
    """Returns True for https with a host name and a path, without `.` segments and user information."""
    if len(client_id) > MAX_CHARACTERS or not _PLAIN.fullmatch(client_id):
        return False
    parts = urlsplit(client_id)
    segments = parts.path.split("/")
    return not {".", ".."} & set(segments) and "@" not in parts.netloc


def host_of(client_id: str) -> str:
    # The host vouches for the document: the only fact that a person can check.
    return urlsplit(client_id).netloc


def read(client_id: str, document: object, existing: Callable[[Sequence[str]], list[str]]) -> Registration:
    """Raises: BadMetadata for another client's id, a secret, or authentication that is not offered here."""
    if not isinstance(document, Mapping):
        raise BadMetadata(INVALID_CLIENT_METADATA, "The client document must be a JSON object.")
    if document.get("client_id") != client_id:
        raise BadMetadata(INVALID_CLIENT_METADATA, "The client_id in the client document differs from its address.")
    if "client_secret" in document or "client_secret_expires_at" in document:
        raise BadMetadata(INVALID_CLIENT_METADATA, "The client document must not contain a secret.")
    # The client reads no registration response, so an unsupported value cannot be replaced: it is refused.
    if document.get("token_endpoint_auth_method", registration.AUTH_METHOD) != registration.AUTH_METHOD:
        raise BadMetadata(
            INVALID_CLIENT_METADATA, "The client document requires an authentication method other than none."
        )
    return registration.read(document, existing)


def lifetime_s(cache_control: str) -> int:
    """Returns the document's max-age, kept between five minutes and a day."""
    lowered = cache_control.lower()
    if "no-store" in lowered or "no-cache" in lowered:
        return MIN_AGE_S
    match = _MAX_AGE.search(lowered)
    return max(MIN_AGE_S, min(int(match[1]) if match else MAX_AGE_S, MAX_AGE_S))
