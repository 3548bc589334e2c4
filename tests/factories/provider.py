"""The identity provider's documents in this process."""

from __future__ import annotations

from orgs.signin import provider


def forget_provider() -> None:
    """Everything is fetched again at the next sign-in."""
    provider._Kept.provider, provider._Kept.away_until = None, 0.0
    provider._keys.cache_clear()
