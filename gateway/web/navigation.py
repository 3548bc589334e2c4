"""The left navigation: groups of links, filtered by role."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from orgs.models import Membership
from orgs.roles import Role


@dataclass(frozen=True, slots=True)
class NavItem:
    label: str
    # Reversed with the organization's id.
    route: str
    icon: str
    # The lowest role that sees the link.
    role: Role = Role.MEMBER


NAVIGATION: tuple[tuple[str, tuple[NavItem, ...]], ...] = (
    (
        "Connect",
        (
            NavItem("Overview", "orgs:overview", "layout-dashboard"),
            NavItem("My setup", "proxy_pages:setup", "terminal-2"),
        ),
    ),
    (
        "Vendors",
        (
            NavItem("Connections", "credentials:connections", "plug"),
            NavItem("Health", "proxy_pages:health", "heartbeat"),
            NavItem("Tool access", "proxy_pages:tools", "tool", Role.ADMIN),
            NavItem("Explain access", "proxy_pages:explain", "help-circle"),
        ),
    ),
    (
        "People",
        (
            NavItem("Members", "orgs:members", "users"),
            NavItem("Invitations", "orgs:invitations", "mail", Role.ADMIN),
            NavItem("Teams", "orgs:teams", "users-group", Role.ADMIN),
            NavItem("Server access", "orgs:server-access", "table", Role.ADMIN),
        ),
    ),
    (
        "Machines",
        (
            NavItem("Service accounts", "oauth_pages:service-clients", "robot", Role.ADMIN),
            NavItem("Connected apps", "oauth_pages:apps", "apps"),
        ),
    ),
    (
        "Observe",
        (
            NavItem("Usage", "audit_pages:usage", "chart-bar", Role.ADMIN),
            NavItem("Request log", "audit_pages:request-log", "list-search", Role.ADMIN),
            NavItem("Admin log", "audit_pages:admin-log", "history", Role.ADMIN),
            NavItem("Log shipping", "audit_pages:log-shipping", "send", Role.ADMIN),
        ),
    ),
    (
        "Settings",
        (
            NavItem("General", "orgs:settings", "settings", Role.OWNER),
            NavItem("Billing", "billing_pages:plan", "credit-card", Role.OWNER),
        ),
    ),
)


def navigation(membership: Membership, current_route: str) -> list[dict[str, Any]]:
    """The groups that this member sees: `{label, items: [{label, url, icon, active}]}`. Empty groups are left out."""
    groups = []
    for label, items in NAVIGATION:
        shown = [
            {
                "label": item.label,
                "url": reverse(item.route, args=[membership.organization_id]),
                "icon": item.icon,
                "active": item.route == current_route,
            }
            for item in items
            if membership.has_role(item.role)
        ]
        if shown:
            groups.append({"label": label, "items": shown})
    return groups
