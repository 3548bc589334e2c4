"""The sections of Home: broken vendors, things that wait for the reader, and the calls of the last days as bars."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from audit.selectors import DayCalls
from billing.selectors import Plan
from billing.states import PlanState
from credentials.rejections import SummaryWithRejection
from gateway.catalog.catalog import Catalog
from oauth_ext.models import Client
from orgs.models import Alert, Organization
from proxy.control_plane.alerts import words
from proxy.control_plane.alerts.listing import told_by
from proxy.control_plane.health.selectors import HealthEntry, worst_first
from proxy.control_plane.health.states import HealthStatus
from proxy.control_plane.health.words import in_words

SHOWN_ROWS = 6  # of one section
BAR_HEIGHT = 72
BAR_STEP = 40
BAR_MARGIN = 7  # left and right of a bar


@dataclass(frozen=True, slots=True)
class Trouble:
    """A vendor that does not answer, or that rejects stored credentials. `since`: None where nobody noted it."""

    vendor: str
    name: str
    is_down: bool
    rejected: bool
    since: datetime | None
    detail: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that an admin or owner can settle. `moment`: its deadline."""

    icon: str
    text: str
    url: str
    moment: datetime | None = None


@dataclass(frozen=True, slots=True)
class DayBar:
    """One day of the drawing, in units of its view box; errors are the lower part of the bar."""

    day: DayCalls
    x: int
    height: int
    error_height: int

    @property
    def y(self) -> int:
        return BAR_HEIGHT - self.height

    @property
    def error_y(self) -> int:
        return BAR_HEIGHT - self.error_height


def troubles(
    health: Sequence[HealthEntry], credentials: Sequence[SummaryWithRejection], *, among: Collection[str] | None = None
) -> list[Trouble]:
    """The worst first; of some vendors only, if they are named."""
    rejected = _rejected_since(credentials)
    found = []
    for entry in worst_first(list(health)):
        slug, is_down = entry.vendor_slug, entry.status is HealthStatus.DOWN
        if (among is not None and slug not in among) or not (is_down or slug in rejected):
            continue
        since = entry.failing_since if is_down else rejected[slug]
        detail = in_words(entry.error_detail or "") if is_down else ""
        found.append(Trouble(slug, entry.display_name, is_down, slug in rejected, since, detail))
    return found


def _rejected_since(credentials: Sequence[SummaryWithRejection]) -> dict[str, datetime]:
    """Vendor to the last rejection of any of its credentials."""
    moments: dict[str, list[datetime]] = defaultdict(list)
    for row in credentials:
        if row.rejected_at:
            moments[row.vendor].append(row.rejected_at)
    return {vendor: max(found) for vendor, found in moments.items()}


class WaitingList:
    """Collects what waits in one organization."""

    def __init__(self, organization: Organization) -> None:
        self._org_id = organization.id
        self.rows: list[Waiting] = []

    def add_plan(self, plan: Plan | None) -> None:
        """A plan that has lapsed, whose payment failed, or that was canceled. None: billing is disabled."""
        if plan is None:
            return
        if plan.state is PlanState.LAPSED:
            self._add("credit-card", gettext("The plan is not active"), "billing_pages:plan")
        elif plan.grace_ends is not None:
            self._add(
                "credit-card", gettext("The last payment failed: the plan ends"), "billing_pages:plan", plan.grace_ends
            )
        elif plan.cancel_at_period_end:
            self._add("credit-card", gettext("The plan was canceled: it ends"), "billing_pages:plan", plan.next_date)

    def add_requests(self, count: int) -> None:
        if count:
            text = ngettext("%(count)s access request", "%(count)s access requests", count) % {"count": count}
            self._add("clipboard-list", text, "orgs:access-requests")

    def add_rejections(self, credentials: Sequence[SummaryWithRejection], catalog: Catalog) -> None:
        for vendor in sorted(_rejected_since(credentials)):
            text = gettext("Replace the %(vendor)s credentials") % {"vendor": catalog.name_of(vendor)}
            self._add("key", text, "credentials:connection", None, vendor)

    def add_tool_changes(self, counts: Mapping[str, tuple[int, int]], health: Sequence[HealthEntry]) -> None:
        """`counts`: vendor to (offered, waiting)."""
        for entry in health:
            _, waiting = counts.get(entry.vendor_slug, (0, 0))
            if waiting:
                text = ngettext(
                    "Review %(count)s tool change at %(vendor)s", "Review %(count)s tool changes at %(vendor)s", waiting
                ) % {"count": waiting, "vendor": entry.display_name}
                self._add("list-check", text, "proxy_pages:tool-access", None, entry.vendor_slug, fragment="#changes")

    def add_alerts(self, alerts: Iterable[Alert]) -> None:
        for alert in alerts:
            told = told_by(alert)
            url = words.page_of(self._org_id, told.kind, alert.cause)
            self.rows.append(Waiting("alert-triangle", words.headline(told), url))

    def add_ending(self, clients: Sequence[Client], before: datetime) -> None:
        for client in clients:
            if client.expires_at is not None and client.expires_at <= before:
                text = gettext("The agent %(name)s and its key expire")
                moment = client.expires_at
            else:
                text = gettext("The previous key of %(name)s stops working")
                moment = client.previous_key_ends_at
            self._add("hourglass", text % {"name": client.name}, "oauth_pages:service-client", moment, client.client_id)

    def _add(
        self, icon: str, text: str, route: str, moment: datetime | None = None, *ids: str, fragment: str = ""
    ) -> None:
        self.rows.append(Waiting(icon, text, reverse(route, args=[self._org_id, *ids]) + fragment, moment))


def bars(days: Sequence[DayCalls]) -> list[DayBar]:
    most = max((each.calls for each in days), default=0) or 1
    return [
        DayBar(each, index * BAR_STEP + BAR_MARGIN, _height(each.calls, most), _height(each.errors, most))
        for index, each in enumerate(days)
    ]


def _height(count: int, most: int) -> int:
    # A single call stays visible beside thousands.
    return max(2, round(BAR_HEIGHT * count / most)) if count else 0
