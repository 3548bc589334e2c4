"""Authentication of a call: from the Authorization header to a `Caller`."""

from __future__ import annotations

from functools import lru_cache

from oauth_ext.bearer import InvalidBearer, looks_like_agent_key
from proxy.caller import Caller
from proxy.caller_cache import CallerCache


class NoBearer(Exception):
    """The request has no Authorization header. Tokens in the query string are ignored."""


class MalformedAuthorization(Exception):
    """The Authorization header is not a single Bearer token."""


def bearer_of(authorization: str | None) -> str:
    """The token of the header. Raises: NoBearer, MalformedAuthorization."""
    if authorization is None:
        raise NoBearer
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer":
        raise MalformedAuthorization
    return token


@lru_cache(maxsize=256)  # bounded: strangers may invent slugs
def accepted_audiences(base_url: str, vendor: str | None) -> frozenset[str]:
    """The audiences that open an endpoint. A token for the unified endpoint opens each vendor's endpoint too."""
    own = {f"{base_url}/v1/{vendor}/mcp"} if vendor else set()
    return frozenset({f"{base_url}/v1/mcp", *own})


async def authenticate(
    caller_cache: CallerCache, token: str, *, address: str, audiences: frozenset[str], agent_keys: bool
) -> Caller:
    """Raises: InvalidBearer; AuthThrottled; DatabaseUnavailable; CoordinationUnavailable. Spec: §5 (2)"""
    # Agent keys open the unified endpoint only.
    if not agent_keys and looks_like_agent_key(token):
        raise InvalidBearer("An agent key works only at the unified MCP endpoint.")
    caller = await caller_cache.get(token, address)
    # The audience of an access token must name this resource (RFC 8707). Agent keys are checked above.
    if not caller.own.is_agent_key and not caller.own.audiences & audiences:
        raise InvalidBearer("The token is for a different resource.")
    return caller
