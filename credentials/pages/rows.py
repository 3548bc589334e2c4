"""A stored credential as pages show it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.urls import reverse
from django.utils.translation import gettext

from credentials.credential_scope import CredentialScope
from credentials.rejections import SummaryWithRejection
from credentials.vendor_check import Verdict
from gateway.lib import clock
from gateway.lib.ages import ago
from gateway.lib.translated import translated

# The route of the page with the organization's credentials.
_OF_ORGANIZATION = "connection"


@dataclass(frozen=True, slots=True)
class CredentialRow:
    organization_id: UUID
    stored: SummaryWithRejection
    now: datetime

    @property
    def whose(self) -> str:
        row = self.stored
        match row.scope:
            case CredentialScope.ORGANIZATION:
                return gettext("Organization")
            case CredentialScope.TEAM:
                return gettext("Team %(name)s") % {"name": row.team_name}
            case CredentialScope.SERVICE_CLIENT:
                return gettext("Agent %(name)s") % {"name": row.service_client_name}
            case CredentialScope.NAMED_KEY:
                return gettext("Key %(name)s") % {"name": row.name}
        raise ValueError(f"no page lists credentials of {row.scope!r}")

    @property
    def is_key(self) -> bool:
        return self.stored.scope is CredentialScope.NAMED_KEY

    @property
    def used_by(self) -> str:
        """The calls that it serves."""
        match self.stored.scope:
            case CredentialScope.ORGANIZATION:
                return gettext("everyone without their own credentials")
            case CredentialScope.NAMED_KEY:
                if not self.stored.team_id:
                    return gettext("not used: no team yet")
                return gettext("team %(team)s") % {"team": self.stored.team_name}
        return ""

    @property
    def stored_ago(self) -> str:
        return translated(ago(self.stored.stored_at, self.now))

    @property
    def used_ago(self) -> str:
        return translated(ago(self.stored.last_used_at, self.now)) if self.stored.last_used_at else ""

    @property
    def checked_ago(self) -> str:
        return translated(ago(self.stored.checked_at, self.now)) if self.stored.checked_at else ""

    @property
    def is_accepted(self) -> bool:
        return self.stored.check_verdict == Verdict.VALIDATED.value

    @property
    def page(self) -> str:
        """Its own page; the organization's are on the vendor's."""
        route, ids = self._route
        return self._url(route, *ids)

    @property
    def check_url(self) -> str:
        return self._url("check", self.stored.id)

    @property
    def delete_url(self) -> str:
        route, ids = self._route
        return self._url("disconnect" if route == _OF_ORGANIZATION else f"{route}-delete", *ids)

    @property
    def _route(self) -> tuple[str, tuple[object, ...]]:
        """The route of its page, and the ids below the organization's."""
        row = self.stored
        match row.scope:
            case CredentialScope.TEAM:
                return "team-credential", (row.team_id, row.vendor)
            case CredentialScope.SERVICE_CLIENT:
                return "service-client-credential", (row.service_client_id, row.vendor)
            case CredentialScope.NAMED_KEY:
                return "key", (row.vendor, row.id)
        return _OF_ORGANIZATION, (row.vendor,)

    def _url(self, route: str, *more: object) -> str:
        return reverse(f"credentials:{route}", args=[self.organization_id, *more])


def shown_rows(organization_id: UUID, rows: list[SummaryWithRejection]) -> list[CredentialRow]:
    """The organization's own, then the named keys, then those of teams and agents."""
    first = (CredentialScope.ORGANIZATION, CredentialScope.NAMED_KEY, CredentialScope.TEAM)
    order = {scope: place for place, scope in enumerate((*first, CredentialScope.SERVICE_CLIENT))}
    now = clock.now()
    return [CredentialRow(organization_id, row, now) for row in sorted(rows, key=lambda each: order[each.scope])]
