"""The health page. HTMX refreshes its table; without scripts the table is as old as the page."""

from __future__ import annotations

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from gateway.lib import clock
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.signed_in import is_by_htmx
from orgs.roles import Role
from proxy.control_plane.health import summary
from proxy.control_plane.health.selectors import vendor_health, worst_first
from proxy.control_plane.health.states import LABELS

# Seconds between refreshes of the table.
RENEW_EVERY_S = 30


class HealthPage(OrgPage):
    """GET /orgs/:orgId/health. Reading never probes. Spec: §3 · ux 5"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "Health"
    nav_route = "proxy_pages:health"

    def get(self, request: HttpRequest) -> HttpResponse:
        # A refresh by HTMX gets the table alone.
        entries = worst_first(vendor_health(self.organization))
        now, checked_at = clock.now(), summary.oldest_check(entries)
        fingerprint = summary.fingerprint(entries)
        left_s = settings.HEALTH_PROBE_INTERVAL_S - (now - checked_at).total_seconds() if checked_at else 0
        context = {
            "entries": entries,
            "summary": summary.summarize(entries),
            "checked_at": checked_at,
            "age": summary.format_age(now - checked_at) if checked_at else "",
            "next_check_s": max(0, round(left_s)),
            "is_collecting": summary.is_collecting(entries),
            "interval_s": settings.HEALTH_PROBE_INTERVAL_S,
            "legend": [(status, LABELS[status], text) for status, text in summary.EXPLAINED.items()],
            "renew_every_s": RENEW_EVERY_S,
            "fingerprint": fingerprint,
            "is_admin": self.membership.has_role(Role.ADMIN),
        }
        if not is_by_htmx(request):
            return self.page("proxy/health.html", context)
        context["is_news"] = request.GET.get("seen") != fingerprint
        return render(request, "proxy/_vendor_health.html", {**context, "organization": self.organization})
