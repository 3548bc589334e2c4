"""The page of one organization: what a ticket about it needs, on one page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import F
from django.http import HttpRequest, HttpResponse

from audit.change_sentences import in_words
from audit.event_types import EventType
from audit.models import AdminAuditEntry
from audit.newest_first import NewestFirst
from audit.pages.facts import Facts, facts_of
from audit.selectors import recent_calls, recent_changes, recent_errors
from audit.shipping.destinations import destinations_of
from billing.pages.plan_words import plan_words
from billing.selectors import plan_of, story
from credentials.rejections import SummaryWithRejection, with_rejections
from credentials.selectors import credential_summaries
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.lib import clock
from gateway.support.page import SupportPage
from gateway.web.search import search_words
from oauth_ext.selectors import connected_apps, service_clients
from orgs.models import Organization
from orgs.selectors import members, pending_invitations
from orgs.services.mail_domains import domains_of
from proxy.control_plane.alerts.listing import in_words_of, open_alerts_of
from proxy.control_plane.health.selectors import HealthEntry, health_of
from proxy.control_plane.health.states import HealthStatus

# Rows of each list; the lists say how many there are.
SHOWN = 25
RECENT = 20
DAYS = 7
ENDS_SOON = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Shown:
    """The first rows of a list. `is_part`: there are more."""

    rows: Sequence[Any]
    is_part: bool

    @classmethod
    def of(cls, rows: Any, limit: int = SHOWN) -> Shown:
        found = list(rows[: limit + 1])
        return cls(found[:limit], len(found) > limit)


@dataclass(frozen=True, slots=True)
class Connection:
    """A credential and its vendor. `fault`: whose fault it is that calls fail; "" while they do not."""

    credential: SummaryWithRejection
    vendor_name: str
    health: HealthEntry | None
    fault: str


@dataclass(frozen=True, slots=True)
class ChangeLine:
    """A row of the admin log as one sentence."""

    entry: AdminAuditEntry
    sentence: str
    facts: Facts


class OrganizationPage(SupportPage):
    """GET /admin/support/organizations/:orgId?find="""

    def get(self, request: HttpRequest, org_id: UUID) -> HttpResponse:
        organization = self.read_organization(org_id)
        find = search_words(request, "find")
        return self.page("support/organization.html", organization.name, facts(organization, find))


def facts(organization: Organization, find: str) -> dict[str, Any]:
    """`find`: only members and agents with its words."""
    catalog = registry.load()
    credentials = credential_summaries(organization)
    plan = plan_of(organization)
    calls = recent_calls(organization.id, DAYS)
    return {
        "organization": organization,
        "find": find,
        "connections": connections(organization, credentials, catalog),
        "errors": recent_errors(organization.id, RECENT),
        "calls": calls,
        "calls_in_all": sum(day.calls for day in calls.days),
        "errors_in_all": sum(day.errors for day in calls.days),
        "call_limit": settings.TOOL_CALLS.limit,
        "plan": plan,
        "plan_words": plan_words(plan),
        "payments": list(story(organization)[:5]) if plan.mode == "stripe" else [],
        "members": Shown.of(members(organization, matching=find)),
        "agents": Shown.of(service_clients(organization, matching=find).annotate(agent_key_id=F("key__id"))),
        "ends_soon": clock.now() + ENDS_SOON,
        "now": clock.now(),
        "apps": Shown.of(connected_apps(organization)),
        "invitations": Shown.of(pending_invitations(organization)),
        "domains": domains_of(organization),
        "destinations": list(destinations_of(organization.id)),
        "alerts": [in_words_of(alert) for alert in open_alerts_of(organization)[:RECENT]],
        "changes": lines(recent_changes(organization.id, RECENT), catalog),
        "staff_changes": lines(staff_changes(organization.id), catalog),
    }


def connections(organization: Organization, credentials: Sequence[Any], catalog: Catalog) -> list[Connection]:
    health = {entry.vendor_slug: entry for entry in health_of(credentials, catalog)}
    found = []
    for row in with_rejections(organization, credentials):
        entry = health.get(row.vendor)
        found.append(Connection(row, catalog.name_of(row.vendor), entry, _fault(row, entry)))
    return found


def _fault(row: SummaryWithRejection, health: HealthEntry | None) -> str:
    if row.rejected_at is not None:
        return "The credential: the vendor rejects it."
    if health is not None and health.status is HealthStatus.DOWN:
        return "The vendor: it does not answer the health check."
    return ""


def staff_changes(org_id: UUID, limit: int = RECENT) -> list[AdminAuditEntry]:
    """Reads and actions of staff, newest first."""
    kinds = [EventType.SUPPORT_ORGANIZATION_READ.value, EventType.SUPPORT_ACTED.value]
    rows = AdminAuditEntry.objects.filter(org_id=org_id, event_type__in=kinds)
    return list(rows.order_by(NewestFirst())[:limit])


def lines(entries: Iterable[AdminAuditEntry], catalog: Catalog) -> list[ChangeLine]:
    return [
        ChangeLine(change.entry, "".join(part.text for part in change.parts), facts_of(change.entry))
        for change in in_words(entries, catalog)
    ]
