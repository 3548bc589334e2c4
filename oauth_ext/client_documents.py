"""Pure: clients that are known by the https address of a document about them, and what that document may say.

Spec: D117 · protocol.md B.10 · draft-ietf-oauth-client-id-metadata-document
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from urllib.parse import urlsplit

from oauth_ext import registration
from oauth_ext.registration import INVALID_CLIENT_METADATA, BadMetadata, Registration

MAX_CHARACTERS = 255
MIN_AGE_S = 300
MAX_AGE_S = 86_400

_PLAIN = re.compile(r"https://[a-z0-9.-]+(?::[0-9]{1,5})?/[A-Za-z0-9\-._~/?&=%+:@!$'(),;]+")
_MAX_AGE = re.compile(r"(?:^|[\s,])max-age=([0-9]{1,9})(?:$|[\s,;])", re.IGNORECASE)


def is_document_address(client_id: str) -> bool:
    """Whether `client_id` is spelled like the address of a client's document: https, a host name, a path of its own."""
    if len(client_id) > MAX_CHARACTERS or not _PLAIN.fullmatch(client_id):
        return False
    parts = urlsplit(client_id)
    segments = parts.path.split("/")
    return not {".", ".."} & set(segments) and "@" not in parts.netloc


def host_of(client_id: str) -> str:
    """The host that vouches for the document, which is all that a person can check."""
    return urlsplit(client_id).netloc


def read(client_id: str, document: object, existing: Callable[[Sequence[str]], list[str]]) -> Registration:
    """What the document at `client_id` registers.

    Unlike one that registers, such a client reads no answer of ours: what it declares must be what it can have.
    Raises: BadMetadata when it speaks of another client, of a secret, or of authentication we cannot check.
    """
    if not isinstance(document, Mapping):
        raise BadMetadata(INVALID_CLIENT_METADATA, "The client's document must be a JSON object.")
    if document.get("client_id") != client_id:
        raise BadMetadata(INVALID_CLIENT_METADATA, "The client's document names another client_id than its address.")
    if "client_secret" in document or "client_secret_expires_at" in document:
        raise BadMetadata(INVALID_CLIENT_METADATA, "The client's document must not speak of a secret.")
    if document.get("token_endpoint_auth_method", registration.AUTH_METHOD) != registration.AUTH_METHOD:
        raise BadMetadata(INVALID_CLIENT_METADATA, "The client's document asks for authentication other than none.")
    return registration.read(document, existing)


def lifetime_s(cache_control: str) -> int:
    """How long the document may be kept: as it says itself, but between five minutes and a day."""
    lowered = cache_control.lower()
    if "no-store" in lowered or "no-cache" in lowered:
        return MIN_AGE_S
    match = _MAX_AGE.search(lowered)
    return max(MIN_AGE_S, min(int(match[1]) if match else MAX_AGE_S, MAX_AGE_S))
