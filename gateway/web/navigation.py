"""The left navigation: six sections, each with its pages, filtered by role; and the tabs of one thing's pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from orgs.models import Membership
from orgs.roles import Role


@dataclass(frozen=True, slots=True)
class NavItem:
    label: str | Promise
    # Reversed with the organization's id; a tab's also with the ids of its thing.
    route: str
    # The lowest role that sees the link.
    role: Role = Role.MEMBER
    # Admins have another page for it.
    is_for_members_only: bool = False
    # Pages that have no item of their own for those who see this one.
    covers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    label: str | Promise
    icon: str
    items: tuple[NavItem, ...]


SECTIONS: tuple[Section, ...] = (
    Section(
        gettext_lazy("Home"),
        "home",
        (
            NavItem(gettext_lazy("Overview"), "proxy_pages:home"),
            NavItem(gettext_lazy("Set up a client"), "proxy_pages:setup"),
        ),
    ),
    Section(gettext_lazy("Vendors"), "plug", (NavItem(gettext_lazy("All vendors"), "proxy_pages:vendors"),)),
    Section(
        gettext_lazy("Agents"),
        "robot",
        (
            NavItem(gettext_lazy("All agents"), "oauth_pages:service-clients", Role.ADMIN),
            NavItem(gettext_lazy("Connected apps"), "oauth_pages:apps"),
        ),
    ),
    Section(
        gettext_lazy("People"),
        "users",
        (
            NavItem(gettext_lazy("Members"), "orgs:members"),
            NavItem(gettext_lazy("Teams"), "orgs:teams", Role.ADMIN),
            NavItem(gettext_lazy("Vendor access"), "orgs:server-access", Role.ADMIN),
            NavItem(gettext_lazy("Invitations"), "orgs:invitations", Role.ADMIN),
            NavItem(gettext_lazy("Access requests"), "orgs:access-requests"),
            NavItem(gettext_lazy("Check access"), "proxy_pages:explain"),
        ),
    ),
    Section(
        gettext_lazy("Activity"),
        "activity",
        (
            NavItem(gettext_lazy("My calls"), "audit_pages:own-calls", is_for_members_only=True),
            NavItem(gettext_lazy("Calls"), "audit_pages:request-log", Role.ADMIN, covers=("audit_pages:own-calls",)),
            NavItem(gettext_lazy("Usage"), "audit_pages:usage", Role.ADMIN),
            NavItem(gettext_lazy("Changes"), "audit_pages:admin-log", Role.ADMIN),
            NavItem(gettext_lazy("Log shipping"), "audit_pages:log-shipping", Role.ADMIN),
        ),
    ),
    Section(
        gettext_lazy("Settings"),
        "settings",
        (
            NavItem(gettext_lazy("General"), "orgs:settings", Role.OWNER),
            NavItem(gettext_lazy("Alerts"), "proxy_pages:alerts", Role.ADMIN),
            NavItem(gettext_lazy("Billing"), "billing_pages:plan", Role.OWNER),
        ),
    ),
)

VENDOR_TABS = (
    NavItem(gettext_lazy("Overview"), "proxy_pages:vendor"),
    NavItem(gettext_lazy("Access"), "proxy_pages:vendor-access", Role.ADMIN),
    NavItem(gettext_lazy("Tools"), "proxy_pages:tool-access", Role.ADMIN),
    NavItem(gettext_lazy("Activity"), "audit_pages:vendor-activity", Role.ADMIN),
    NavItem(gettext_lazy("Settings"), "credentials:connection", Role.ADMIN),
)
PERSON_TABS = (
    NavItem(gettext_lazy("Overview"), "orgs:person"),
    NavItem(gettext_lazy("Access"), "orgs:person-access"),
    NavItem(gettext_lazy("Activity"), "audit_pages:person-activity", Role.ADMIN),
    NavItem(gettext_lazy("Settings"), "orgs:member-role", Role.OWNER),
)
AGENT_TABS = (
    NavItem(gettext_lazy("Overview"), "oauth_pages:service-client", Role.ADMIN),
    NavItem(gettext_lazy("Access"), "oauth_pages:service-client-access", Role.ADMIN),
    NavItem(gettext_lazy("Tools"), "oauth_pages:service-client-tools", Role.ADMIN),
    NavItem(gettext_lazy("Activity"), "audit_pages:service-client-activity", Role.ADMIN),
    NavItem(gettext_lazy("Settings"), "oauth_pages:service-client-settings", Role.ADMIN),
)
TEAM_TABS = (
    NavItem(gettext_lazy("Overview"), "orgs:team", Role.ADMIN),
    NavItem(gettext_lazy("Access"), "orgs:team-access", Role.ADMIN),
    NavItem(gettext_lazy("Tools"), "orgs:team-tools", Role.ADMIN),
    NavItem(gettext_lazy("Activity"), "audit_pages:team-activity", Role.ADMIN),
    NavItem(gettext_lazy("Settings"), "orgs:team-settings", Role.ADMIN),
)


def navigation(
    membership: Membership, current_route: str, *, counts: Mapping[str, int] | None = None
) -> list[dict[str, Any]]:
    """The sections that this member sees: `{label, icon, url, is_open, count, items: [{label, url, active, count}]}`.

    A section leads to its first page. A section with no page for the role is left out.
    `counts`: by route, the things that wait there for the member.
    """
    sections = []
    for section in SECTIONS:
        items = links(section.items, membership, current_route, [membership.organization_id], counts=counts)
        if items:
            is_open = any(item["active"] for item in items)
            sections.append(
                {
                    "label": section.label,
                    "icon": section.icon,
                    "url": items[0]["url"],
                    "is_open": is_open,
                    "count": sum(item["count"] for item in items),
                    "items": items,
                }
            )
    return sections


def links(
    items: Sequence[NavItem],
    membership: Membership,
    current_route: str,
    ids: Sequence[object],
    *,
    counts: Mapping[str, int] | None = None,
) -> list[dict[str, Any]]:
    """The items that this member may open: `{label, url, active, count}`."""
    return [
        {
            "label": item.label,
            "url": reverse(item.route, args=ids),
            "active": current_route in (item.route, *item.covers),
            "count": (counts or {}).get(item.route, 0),
        }
        for item in items
        if membership.has_role(item.role) and not (item.is_for_members_only and membership.has_role(Role.ADMIN))
    ]
