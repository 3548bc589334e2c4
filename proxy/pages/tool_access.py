"""Tool access: the vendors' tools in a table, and the editors of a role's and an agent's list."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from django.utils.functional import cached_property
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy

from gateway.catalog.vendor import Vendor
from gateway.web.navigation import VENDOR_TABS
from oauth_ext.bearer_rows import client_row
from oauth_ext.selectors import client_allowlists, service_client_names
from oauth_ext.services.service_client_allowlists import clear_client_allowlist, set_client_allowlist
from orgs import selectors
from orgs.access_rules import Allowlists, refusing_limit, role_may_call_tool
from orgs.models import ToolAllowlist
from orgs.roles import Role, role_named
from orgs.services.tool_access import clear_allowlist, set_allowlist
from orgs.services.tool_approval import Review
from proxy.control_plane.assumed_callers import principal_of_client_row
from proxy.pages.agent_list import AgentList
from proxy.pages.tool_choice import Choice, StoredList
from proxy.pages.tool_editor import Holder, ToolEditorPage

# Agents that the editor of the members' list names; it counts the others.
NAMED_AGENTS = 5


PLURALS = {
    Role.MEMBER: gettext_lazy("members"),
    Role.ADMIN: gettext_lazy("admins"),
    Role.OWNER: gettext_lazy("owners"),
}


class ToolAccessPage(ToolEditorPage):
    """GET, POST /orgs/:orgId/vendors/:vendor/tools?role=: the list of a role. Spec: §4.9 · D75-D78"""

    title = gettext_lazy("Vendor")
    nav_route = "proxy_pages:vendors"
    tabs = VENDOR_TABS
    tab_route = "proxy_pages:tool-access"
    template = "proxy/tool_access.html"
    preview_template = "proxy/tool_preview.html"

    @cached_property
    def role(self) -> Role:
        named = self.request.POST.get("role", "") if self.request.method == "POST" else self.request.GET.get("role")
        if self.request.method == "POST" and self.request.POST.get("action") in {"discover", "approve"}:
            named = named or None
        return role_named(Role.MEMBER.value if named is None else named)

    def holder(self) -> Holder:
        role = self.role.value
        plural = str(PLURALS[self.role])
        return Holder(name=plural, plural=plural, query=urlencode({"role": role}))

    def stored(self, vendor: Vendor) -> StoredList | None:
        return self._lists(vendor).get(self.role.value)

    def store(self, vendor: Vendor, choice: Choice, review: Review) -> None:
        target: dict[str, Any] = {
            "actor": self.actor,
            "organization": self.organization,
            "vendor": vendor.slug,
            "role": self.role.value,
            "seen_version": choice.version,
        }
        if choice.is_list:
            set_allowlist(tools=choice.tools, review=review, **target)
        else:
            clear_allowlist(**target)

    def may_call(self, vendor: Vendor) -> Callable[[str, bool], bool]:
        allowlists = self._rights(vendor)
        return lambda name, is_read_only: role_may_call_tool(self.role, vendor.slug, name, allowlists)

    def others(self, vendor: Vendor) -> dict[str, Sequence[str]]:
        lists = self._lists(vendor)
        # In the order of the roles.
        return {role.value: lists[role.value].tools for role in Role if role is not self.role and role.value in lists}

    def own_context(self, vendor: Vendor) -> dict[str, Any]:
        # Agents have the rights of the role member.
        agents = service_client_names(self.organization) if self.role is Role.MEMBER else []
        return {
            "role": self.role.value,
            "changes_of": f"{vendor.slug}:{self.role.value}",
            "roles": [each.value for each in Role],
            "agents": agents[:NAMED_AGENTS],
            "more_agents": max(len(agents) - NAMED_AGENTS, 0),
        }

    def _rights(self, vendor: Vendor) -> Allowlists:
        return {(vendor.slug, role): frozenset(row.tools) for role, row in self._lists(vendor).items()}

    def _lists(self, vendor: Vendor) -> dict[str, ToolAllowlist]:
        """By role."""
        # A form changes them.
        return self._lists_shown if self.request.method == "GET" else self._read_lists()

    @cached_property
    def _lists_shown(self) -> dict[str, ToolAllowlist]:
        return self._read_lists()

    def _read_lists(self) -> dict[str, ToolAllowlist]:
        return {row.role: row for row in selectors.allowlist_rows(self.organization, self.kwargs["vendor"])}


class ClientToolsPage(AgentList, ToolEditorPage):
    """GET, POST /orgs/:orgId/agents/:clientId/tools/:vendor: the list of one agent. Spec: D165"""

    title = gettext_lazy("Allowed tools")
    template = "proxy/client_tools.html"
    preview_template = "proxy/client_tool_preview.html"

    def stored(self, vendor: Vendor) -> StoredList | None:
        return client_allowlists(self.client, vendor.slug).first()

    def store(self, vendor: Vendor, choice: Choice, review: Review) -> None:
        target: dict[str, Any] = {
            "actor": self.actor,
            "organization": self.organization,
            "client": self.client,
            "vendor": vendor.slug,
            "seen_version": choice.version,
        }
        if choice.is_list:
            set_client_allowlist(tools=choice.tools, review=review, **target)
        else:
            clear_client_allowlist(**target)

    def may_call(self, vendor: Vendor) -> Callable[[str, bool], bool]:
        principal, member = principal_of_client_row(client_row(self.client)), Role.MEMBER.value
        allowlists = {(vendor.slug, member): frozenset(self._by_role.tools)} if self._by_role else {}
        return lambda name, is_read_only: (
            refusing_limit(principal, vendor.slug, name, allowlists, is_read_only=is_read_only) is None
        )

    def own_context(self, vendor: Vendor) -> dict[str, Any]:
        return {
            "client": self.client,
            "changes_of": self.client.id,
            "by_role": self._by_role,
            "is_read_only": self.client.is_read_only,
        }

    @cached_property
    def _by_role(self) -> ToolAllowlist | None:
        """The list of the role member, which binds agents too."""
        rows = selectors.allowlist_rows(self.organization, self.kwargs["vendor"])
        return rows.filter(role=Role.MEMBER.value).first()
