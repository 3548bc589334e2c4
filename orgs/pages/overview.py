"""An organization's front page: the setup checklist and recent activity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse

from audit.selectors import MAX_CALLS_COUNTED, calls_per_day, has_any_call, recent_errors
from billing import entitlements
from credentials.selectors import connected_vendors
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from oauth_ext.selectors import service_clients
from orgs import selectors
from orgs.roles import Role


@dataclass(frozen=True, slots=True)
class Step:
    """One line of the checklist. `role`: the lowest role that can do it."""

    label: str
    hint: str
    route: str
    is_done: bool
    role: Role = Role.MEMBER
    # Not needed by a person who works alone.
    is_optional: bool = False


class OverviewPage(OrgPage):
    """GET /orgs/:orgId"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "Overview"
    nav_route = "orgs:overview"

    def get(self, request: HttpRequest) -> HttpResponse:
        organization = self.organization
        is_admin = self.membership.has_role(Role.ADMIN)
        steps = [step for step in self._checklist() if self.membership.has_role(step.role)]
        days = calls_per_day(organization.id)
        context: dict[str, Any] = {
            "steps": steps,
            "steps_done": sum(1 for step in steps if step.is_done),
            # The checklist is at the top until all required steps are done.
            "has_steps_left": not all(step.is_done or step.is_optional for step in steps),
            "calls_today": days[-1].calls,
            "max_counted": MAX_CALLS_COUNTED,
            "calls_per_day": days,
            "chart": {"days": [day.day.isoformat() for day in days], "calls": [day.calls for day in days]},
            "vendors": connected_vendors(organization),
            "is_admin": is_admin,
        }
        if is_admin:
            context |= self._errors()
        return self.page("orgs/overview.html", context)

    def _errors(self) -> dict[str, Any]:
        """Rows of the request log, under its gate. Spec: D147"""
        has_plan = entitlements.is_active(self.organization)
        return {"has_plan": has_plan, "errors": recent_errors(self.organization.id, 10) if has_plan else []}

    def _checklist(self) -> list[Step]:
        organization = self.organization
        invited = selectors.members(organization).count() > 1 or selectors.pending_invitations(organization).exists()
        return [
            Step(
                "Connect a vendor",
                "Store the credentials of a tool server once; your agents never see them.",
                "credentials:connections",
                bool(connected_vendors(organization)),
            ),
            Step(
                "Create a service account",
                "A machine identity with its own key for each agent or script.",
                "oauth_pages:service-clients",
                service_clients(organization).exists(),
                role=Role.ADMIN,
            ),
            Step(
                "Set up your client",
                "Paste one snippet into Claude, Cursor, VS Code or a shell and make the first call.",
                "proxy_pages:setup",
                has_any_call(organization.id),
            ),
            Step(
                "Invite people",
                "Optional: a link lets colleagues join, and you decide which vendors each may use.",
                "orgs:invitations",
                invited,
                role=Role.ADMIN,
                is_optional=True,
            ),
        ]
