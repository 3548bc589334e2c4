from __future__ import annotations

from orgs.models import Organization
from orgs.roles import TokenScope
from orgs.services.management_tokens import create_token
from tests.factories.cast import Cast


def made_token(
    cast: Cast,
    who: str,
    *,
    scope: TokenScope = TokenScope.ADMIN,
    organization: Organization | None = None,
    name: str = "deploy",
    days: int | None = None,
) -> str:
    """The whole token of a person of the cast."""
    made = create_token(
        actor=cast.user(who),
        organization=organization or cast.org,
        name=name,
        scope=scope.value,
        expires_in_days=days,
    )
    return made.token


def bearer_of(token: str) -> dict[str, str]:
    """The header of a request."""
    return {"Authorization": f"Bearer {token}"}
