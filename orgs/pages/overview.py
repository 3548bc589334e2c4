"""An organization's front page: what is left to do, then what happened."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.urls import reverse

from audit.selectors import calls_per_day, calls_today, recent_errors
from credentials.selectors import connected_vendors
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from oauth_ext.selectors import service_clients
from orgs.roles import Role


class OverviewPage(OrgPage):
    """GET /orgs/:orgId. The checklist is the page until its three steps are done."""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "Overview"
    nav_route = "orgs:overview"

    def get(self, request: HttpRequest) -> HttpResponse:
        """Checklist, calls of today, the last days, the last errors (admins)."""
        organization = self.organization
        is_admin = self.membership.has_role(Role.ADMIN)
        today = calls_today(organization.id)
        steps = self._checklist(today)
        days = calls_per_day(organization.id)
        context = {
            "steps": steps,
            "steps_done": sum(1 for step in steps if step["done"]),
            "calls_today": today,
            "calls_per_day": days,
            "chart": {"days": [day.day.isoformat() for day in days], "calls": [day.calls for day in days]},
            "vendors": connected_vendors(organization),
            "errors": recent_errors(organization.id, 10) if is_admin else [],
            "is_admin": is_admin,
        }
        return self.page("orgs/overview.html", context)

    def _checklist(self, calls: int) -> list[dict[str, object]]:
        organization = self.organization
        return [
            {
                "label": "Connect a vendor",
                "hint": "Store the credentials of a tool server once; your agents never see them.",
                "url": reverse("credentials:connections", args=[organization.id]),
                "done": bool(connected_vendors(organization)),
            },
            {
                "label": "Create a service account",
                "hint": "A machine identity with its own key for each agent or script.",
                "url": reverse("oauth_pages:service-accounts", args=[organization.id]),
                "done": service_clients(organization).exists(),
            },
            {
                "label": "Set up your client",
                "hint": "Paste one snippet into Claude, Cursor, VS Code or a shell and make the first call.",
                "url": reverse("proxy_pages:setup", args=[organization.id]),
                "done": calls > 0,
            },
        ]
