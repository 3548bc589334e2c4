"""From the Authorization header to a caller. Anything doubtful is refused; there is no second way in."""

from __future__ import annotations

from oauth_ext.bearer import InvalidBearer, looks_like_agent_key
from proxy.access import Caller
from proxy.snapshot import Snapshots


class NoBearer(Exception):
    """No credentials were sent; a token in the query string is not read at all."""


class MalformedAuthorization(Exception):
    """An Authorization header that is not one Bearer token."""


def bearer_of(authorization: str | None) -> str:
    """The token of a header.

    Raises: NoBearer, MalformedAuthorization.
    """
    if authorization is None:
        raise NoBearer
    scheme, _, token = authorization.partition(" ")
    token = token.strip()
    if scheme.lower() != "bearer":
        raise MalformedAuthorization
    return token


async def authenticate(
    snapshots: Snapshots, token: str, *, address: str, audiences: frozenset[str], agent_keys: bool
) -> Caller:
    """The caller behind a token that came from `address` and is meant for one of `audiences`.

    An agent key opens the unified endpoint only.
    Raises: InvalidBearer; RefusedTooOften; SnapshotUnavailable; CoordinationUnavailable.   Spec: §5 (2)
    """
    if not agent_keys and looks_like_agent_key(token):
        raise InvalidBearer("An agent key opens the unified MCP endpoint only.")
    caller = await snapshots.caller(token, address)
    if not caller.is_agent_key and not caller.audiences & audiences:
        raise InvalidBearer("The token is meant for another resource.")
    return caller
