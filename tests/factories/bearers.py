"""The identity of a bearer, read on the test's own connection."""

from __future__ import annotations

from oauth_ext.bearer import BearerIdentity, identity_of, read_bearer


def load_identity(bearer: str) -> BearerIdentity:
    """Raises: InvalidBearer."""
    presented = read_bearer(bearer)
    return identity_of(presented, presented.statement.ask(presented.key))
