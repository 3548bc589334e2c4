"""Fetches a client's metadata document from an address that a stranger may have chosen.

Before any sign-in, so: one request, to a public address that is checked after resolution, without redirects, proxies
or cookies, bounded in time and size.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.lib import strict_json
from gateway.lib.outbound import AddressRefused, check_url

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_S = 5.0  # of the whole fetch, resolution included
MAX_BYTES = 64 * 1024  # of one document
JSON_DEPTH = 16
_HEADERS = {"Accept": "application/json, application/*+json", "Accept-Encoding": "identity"}


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


async def fetch_document(address: str) -> Fetched:
    """Raises: FetchFailed. Spec: D117 · protocol.md B.10"""
    import aiohttp  # here, because it takes 8 MB and most processes never fetch a document

    try:
        check_url(address, allow_private=False)
        async with asyncio.timeout(TIMEOUT_S):
            return await _get(address)
    except AddressRefused:
        raise FetchFailed("The client's document is at an address that is not allowed.") from None
    except TimeoutError:
        raise FetchFailed("The client's document did not arrive in time.") from None
    except aiohttp.ClientConnectorError as fault:
        refused = isinstance(fault.os_error, AddressRefused)
        text = "is at an address that is not allowed" if refused else "cannot be reached"
        raise FetchFailed(f"The client's document {text}.") from None
    except (aiohttp.ClientError, OSError, ValueError):
        raise FetchFailed("The client's document cannot be fetched.") from None


async def _get(address: str) -> Fetched:
    import aiohttp

    connector = aiohttp.TCPConnector(resolver=_resolver(), ssl=_ssl_context(), force_close=True)
    async with (
        aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
        ) as session,
        session.get(address, headers=_HEADERS, allow_redirects=False) as answer,
    ):
        if answer.status != 200:
            raise FetchFailed(f"The client's document answers with status {answer.status}.")
        media_type = answer.content_type
        if media_type != "application/json" and not (
            media_type.startswith("application/") and media_type.endswith("+json")
        ):
            raise FetchFailed("The client's document is not JSON.")
        body = await _read(answer)
        return Fetched(_parsed(body), answer.headers.get("Cache-Control", ""))


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    body = b""
    async for chunk in answer.content.iter_chunked(8_192):
        body += chunk
        if len(body) > MAX_BYTES:
            raise FetchFailed("The client's document is too large.")
    return body


def _parsed(body: bytes) -> object:
    try:
        return strict_json.loads(body, max_depth=JSON_DEPTH)
    except strict_json.StrictJSONError:
        raise FetchFailed("The client's document is not JSON.") from None


def _resolver() -> aiohttp.abc.AbstractResolver:
    from gateway.lib.guarded_resolver import GuardedResolver

    return GuardedResolver(allow_private=False)


def _ssl_context() -> ssl.SSLContext:
    return ssl.create_default_context()
