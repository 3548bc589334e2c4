"""The list of connected vendors. HTMX refreshes it; without scripts it is as old as the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy

from credentials.rejections import SummaryWithRejection, summaries_with_rejection
from gateway.lib import clock
from gateway.lib.translated import translated
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.signed_in import is_by_htmx
from orgs import selectors
from orgs.roles import Role
from proxy.control_plane.health import summary
from proxy.control_plane.health.selectors import HealthEntry, vendor_health, worst_first
from proxy.control_plane.health.states import LABELS

# Seconds between refreshes of the table.
RENEW_EVERY_S = 30


@dataclass(frozen=True, slots=True)
class VendorRow:
    """One connected vendor. `allowed`: tools that the reader's role may call, None for all of them."""

    health: HealthEntry
    credentials: tuple[SummaryWithRejection, ...]
    offered: int
    allowed: int | None
    # Tools that were added, changed or removed since they were approved.
    waiting: int

    @property
    def rejected_at(self) -> datetime | None:
        return max((row.rejected_at for row in self.credentials if row.rejected_at), default=None)

    @property
    def is_verified(self) -> bool:
        return all(row.validated_at for row in self.credentials)


class VendorsPage(OrgPage):
    """GET /orgs/:orgId/vendors. Reading never probes. Spec: §3 · ux 5"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = gettext_lazy("Vendors")
    nav_route = "proxy_pages:vendors"

    def get(self, request: HttpRequest) -> HttpResponse:
        # A refresh by HTMX gets the table alone.
        entries = worst_first(vendor_health(self.organization))
        now, checked_at = clock.now(), summary.oldest_check(entries)
        fingerprint = summary.fingerprint(entries)
        left_s = settings.HEALTH_PROBE_INTERVAL_S - (now - checked_at).total_seconds() if checked_at else 0
        context: dict[str, Any] = {
            "rows": self._rows(entries),
            "summary": translated(summary.summarize(entries)),
            "checked_at": checked_at,
            "age": translated(summary.format_age(now - checked_at)) if checked_at else "",
            "next_check_s": max(0, round(left_s)),
            "is_collecting": summary.is_collecting(entries),
            "interval_s": settings.HEALTH_PROBE_INTERVAL_S,
            "legend": [
                (status, translated(LABELS[status]), translated(text)) for status, text in summary.EXPLAINED.items()
            ],
            "renew_every_s": RENEW_EVERY_S,
            "fingerprint": fingerprint,
            "is_admin": self.membership.has_role(Role.ADMIN),
        }
        if not is_by_htmx(request):
            context["admins"] = selectors.people_who_may(self.organization, Role.ADMIN)
            return self.page("proxy/vendors.html", context)
        context["is_news"] = request.GET.get("seen") != fingerprint
        return render(request, "proxy/_vendors.html", {**context, "organization": self.organization})

    def _rows(self, entries: list[HealthEntry]) -> list[VendorRow]:
        by_vendor: Mapping[str, tuple[SummaryWithRejection, ...]] = {
            slug: tuple(rows)
            for slug, rows in groupby(summaries_with_rejection(self.organization), key=lambda row: row.vendor)
        }
        counts = selectors.tool_counts(self.organization)
        lists = selectors.allowlists(self.organization.id)
        rows = []
        for entry in entries:
            slug = entry.vendor_slug
            listed = lists.get((slug, self.membership.role))
            offered, waiting = counts.get(slug, (0, 0))
            allowed = None if listed is None else len(listed)
            rows.append(VendorRow(entry, by_vendor.get(slug, ()), offered, allowed, waiting))
        return rows
