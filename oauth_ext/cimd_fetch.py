"""Fetches a client's metadata document from an address that a stranger may have chosen, before any sign-in."""

from __future__ import annotations

from dataclasses import dataclass

from gateway.lib import guarded_client, strict_json
from gateway.lib.guarded_client import BadResponse, OutboundError, OutboundTimeout, ResponseTooLarge
from gateway.lib.outbound import AddressRefused

TIMEOUT_S = 5.0
MAX_BYTES = 64 * 1024  # of one document
JSON_DEPTH = 16


class FetchFailed(Exception):
    """`reason` is a sentence that repeats neither the address nor the response."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Fetched:
    """A parsed JSON document and its Cache-Control header."""

    document: object
    cache_control: str


def fetch_document(address: str) -> Fetched:
    """Raises: FetchFailed. Spec: D117 · protocol.md B.10"""
    answer = _get(address)
    if answer.status != 200:
        raise FetchFailed(f"The client document returned status {answer.status}.")
    media_type = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if media_type != "application/json" and not (
        media_type.startswith("application/") and media_type.endswith("+json")
    ):
        raise FetchFailed("The client document is not JSON.")
    try:
        document = strict_json.loads(answer.body, max_depth=JSON_DEPTH)
    except strict_json.StrictJSONError:
        raise FetchFailed("The client document is not JSON.") from None
    return Fetched(document, answer.headers.get("Cache-Control", ""))


def _get(address: str) -> guarded_client.Response:
    try:
        return guarded_client.send(
            "GET",
            address,
            allow_private=False,
            timeout_s=TIMEOUT_S,
            max_bytes=MAX_BYTES,
            headers={"Accept": "application/json, application/*+json"},
        )
    except AddressRefused:
        raise FetchFailed("The client document is at an address that is not allowed.") from None
    except OutboundTimeout:
        raise FetchFailed("The client document did not arrive in time.") from None
    except ResponseTooLarge:
        raise FetchFailed("The client document is too large.") from None
    except BadResponse:
        raise FetchFailed("The client document is not JSON.") from None
    except OutboundError:
        raise FetchFailed("The client document cannot be reached.") from None
