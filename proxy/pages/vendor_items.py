"""The pages of a vendor's resources and prompts: the lists of the roles, and those of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.functional import cached_property
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy

from oauth_ext.selectors import client_allowlists, client_item_lists
from oauth_ext.services.service_client_item_lists import clear_client_item_list, set_client_item_list
from orgs import selectors
from orgs.allowed_items import ItemType
from orgs.roles import Role, role_named
from orgs.services.item_access import clear_item_list, set_item_list
from proxy.pages.agent_list import AgentList
from proxy.pages.item_editor import GATES, ItemChoice, ItemEditor, StoredItems
from proxy.pages.tool_access import PLURALS
from proxy.pages.tool_editor import Holder
from proxy.pages.vendor import VendorThingPage


class VendorItemsPage(ItemEditor, VendorThingPage):
    """GET, POST /orgs/:orgId/vendors/:vendor/resources?role=. docs/decisions/0104, 0115"""

    gates = GATES
    title = gettext_lazy("Vendor")
    tab_route = "proxy_pages:tool-access"
    template = "proxy/vendor_items.html"

    @cached_property
    def role(self) -> Role:
        form = self.request.POST if self.request.method == "POST" else self.request.GET
        return role_named(form.get("role") or Role.MEMBER.value)

    def holder(self) -> Holder:
        plural = str(PLURALS[self.role])
        return Holder(name=plural, plural=plural, query=urlencode({"role": self.role.value}))

    def stored(self) -> Mapping[str, StoredItems]:
        rows = selectors.item_list_rows(self.organization, self.vendor.slug).filter(role=self.role.value)
        return {row.kind: row for row in rows}

    def store(self, kind: ItemType, choice: ItemChoice) -> None:
        target: dict[str, Any] = {
            "actor": self.actor,
            "organization": self.organization,
            "vendor": self.vendor.slug,
            "role": self.role.value,
            "kind": kind.value,
            "seen_version": choice.version,
        }
        if choice.is_list:
            set_item_list(entries=choice.entries, **target)
        else:
            clear_item_list(**target)

    def has_tool_list(self) -> bool:
        return self._has_tool_list

    @cached_property
    def _has_tool_list(self) -> bool:
        rows = selectors.allowlist_rows(self.organization, self.vendor.slug)
        return rows.filter(role=self.role.value).exists()

    def own_context(self) -> dict[str, Any]:
        return {"role": self.role.value, "roles": [each.value for each in Role]}


class ClientItemsPage(AgentList, ItemEditor, VendorThingPage):
    """GET, POST /orgs/:orgId/agents/:clientId/resources/:vendor. docs/decisions/0115"""

    gates = GATES
    title = gettext_lazy("Allowed resources and prompts")
    template = "proxy/client_items.html"

    def stored(self) -> Mapping[str, StoredItems]:
        return {row.kind: row for row in client_item_lists(self.client, self.vendor.slug)}

    def store(self, kind: ItemType, choice: ItemChoice) -> None:
        target: dict[str, Any] = {
            "actor": self.actor,
            "organization": self.organization,
            "client": self.client,
            "vendor": self.vendor.slug,
            "kind": kind.value,
            "seen_version": choice.version,
        }
        if choice.is_list:
            set_client_item_list(entries=choice.entries, **target)
        else:
            clear_client_item_list(**target)

    def has_tool_list(self) -> bool:
        return self._has_tool_list

    @cached_property
    def _has_tool_list(self) -> bool:
        return client_allowlists(self.client, self.vendor.slug).exists()

    def own_context(self) -> dict[str, Any]:
        return {"client": self.client}
