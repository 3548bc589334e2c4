"""Tool access: a vendor's tools as a checklist per role, changes to review, and a role's preview."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from audit.selectors import MAX_COUNTED, tool_use
from credentials.selectors import credential_summaries, people_vendors
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.coordination import backend as coordination
from gateway.lib import clock
from gateway.lib.errors import DomainError, NotFound
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs import selectors
from orgs.errors import AllowlistChanged, ToolsChanged
from orgs.models import ToolAllowlist
from orgs.roles import Role, role_named
from orgs.services.tool_access import clear_allowlist, set_allowlist
from orgs.services.tool_approval import Review, approve_shown_tools, fingerprint_of
from proxy.control_plane import discovery
from proxy.control_plane.health import state_cache as health
from proxy.control_plane.health.states import HealthStatus
from proxy.control_plane.tool_review_listing import ToolReview
from proxy.credential_lists import list_owners
from proxy.pages.tool_choice import Choice, from_form, from_row, proposed

# Period of the usage figures beside each tool.
USED_WITHIN = timedelta(days=30)


class ToolsPage(OrgPage):
    """GET /orgs/:orgId/tools: connected vendors, and how many tools each role may call."""

    gates = {"GET": Gate(Role.ADMIN)}
    title = "Tool access"
    nav_route = "proxy_pages:tools"

    def get(self, request: HttpRequest) -> HttpResponse:
        counts = selectors.tool_counts(self.organization)
        allowlists = selectors.allowlists(self.organization.id)
        catalog = registry.load()
        slugs = {*people_vendors(self.organization), *(vendor for vendor, _ in allowlists)}
        vendors = sorted(filter(None, map(catalog.get, slugs)), key=lambda vendor: vendor.name.casefold())
        rows = [
            {
                "vendor": vendor,
                "offered": counts.get(vendor.slug, (0, 0))[0],
                "waiting": counts.get(vendor.slug, (0, 0))[1],
                "roles": [(role.value, allowlists.get((vendor.slug, role.value))) for role in Role],
            }
            for vendor in vendors
        ]
        return self.page("proxy/tools.html", {"rows": rows, "roles": [role.value for role in Role]})


class ToolAccessPage(OrgPage):
    """GET, POST /orgs/:orgId/tools/:vendor?role=. Only `discover` asks the vendor. Spec: §4.9 · D75-D78 · ux.md 7"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.OWNER),
        "POST approve": Gate(Role.OWNER),
        "POST discover": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS),
    }
    title = "Tool access"
    nav_route = "proxy_pages:tools"

    def get(self, request: HttpRequest, vendor: str) -> HttpResponse:
        """The role's stored list, or the proposal of `?start=`."""
        known, role = registry.known_vendor(vendor), role_named(request.GET.get("role", Role.MEMBER.value))
        tools = self._tools(known)
        if request.GET.get("view") == "preview":
            return self._preview(tools, role)
        lists = self._lists(known)
        begin = request.GET.get("start", "")
        choice = proposed(begin, tools, lists, role.value) if begin else from_row(lists.get(role.value))
        return self._page(tools, role, choice)

    def _tools(self, vendor: Vendor) -> ToolReview:
        return ToolReview(
            self.organization, vendor, list_owners(credential_summaries(self.organization, vendor=vendor.slug))
        )

    def post(self, request: HttpRequest, vendor: str) -> HttpResponse:
        known = registry.known_vendor(vendor)
        match request.POST.get("action"):
            case "discover":
                return self._discover(known)
            case "approve":
                return self._approve(known)
        return self._save(known, role_named(request.POST.get("role", "")))

    def _discover(self, vendor: Vendor) -> HttpResponse:
        try:
            found = discovery.discover_for(self.membership, vendor)
        except NotFound:
            raise
        except discovery.NotConnected:
            messages.error(self.request, f"{vendor.name} is not connected. What was seen of it before is kept.")
        except DomainError as refusal:
            messages.error(self.request, f"Could not reach {vendor.name}: {refusal.message} The saved list is kept.")
        else:
            changed = f", {len(found.changed)} of them new or changed" if found.changed else ""
            messages.success(self.request, f"{vendor.name} offers {len(found.definitions)} tools{changed}.")
        return self._back(vendor)

    def _approve(self, vendor: Vendor) -> HttpResponse:
        try:
            count = approve_shown_tools(
                actor=self.actor, organization=self.organization, vendor=vendor.slug, review=self._review()
            )
        except ToolsChanged as refusal:
            messages.error(self.request, refusal.message)
        else:
            what = "1 change" if count == 1 else f"{count} changes"
            messages.success(self.request, f"{what} approved. The lists stay as they are.")
        return self._back(vendor)

    def _save(self, vendor: Vendor, role: Role) -> HttpResponse:
        tools, choice = self._tools(vendor), from_form(self.request.POST)
        # An empty list blocks the whole vendor for the role, so it needs confirmation.
        if choice.is_list and not choice.tools and self.request.POST.get("confirm") != "empty":
            return self._page(tools, role, choice, asks_about_empty=True, status=422)
        before = self._lists(vendor).get(role.value)
        try:
            self._store(vendor, role, choice)
        except AllowlistChanged as refusal:
            return self._page(tools, role, choice, conflict=refusal, status=409)
        except DomainError as refusal:
            if refusal.status not in {400, 422}:
                raise
            return self._page(tools, role, choice, fault=refusal.sentences, status=422)
        messages.success(self.request, _saved(role, before, choice, tools))
        if choice.is_list and fingerprint_of(tools.rows) != self._review().fingerprint:
            messages.warning(self.request, f"{ToolsChanged.message} They are not approved.")
        return self._back(vendor)

    def _store(self, vendor: Vendor, role: Role, choice: Choice) -> None:
        target: dict[str, Any] = {
            "actor": self.actor,
            "organization": self.organization,
            "vendor": vendor.slug,
            "role": role.value,
            "seen_version": choice.version,
        }
        if choice.is_list:
            set_allowlist(tools=choice.tools, review=self._review(), **target)
        else:
            clear_allowlist(**target)

    def _review(self) -> Review:
        return Review(self.request.POST.get("fingerprint", ""), frozenset(self.request.POST.getlist("shown")))

    def _lists(self, vendor: Vendor) -> dict[str, ToolAllowlist]:
        return {row.role: row for row in selectors.allowlist_rows(self.organization, vendor.slug)}

    def _preview(self, tools: ToolReview, role: Role) -> HttpResponse:
        preview = tools.preview(role, selectors.allowlists(self.organization.id))
        # Without allowlists: the comparison shows how many tokens the list saves.
        everything = tools.preview(role, {})
        context = {"preview": preview, "everything": everything, **self._frame(tools, role)}
        return self.page("proxy/tool_preview.html", context)

    def _page(
        self,
        tools: ToolReview,
        role: Role,
        choice: Choice,
        *,
        asks_about_empty: bool = False,
        conflict: AllowlistChanged | None = None,
        fault: str = "",
        status: int = 200,
    ) -> HttpResponse:
        lists = self._lists(tools.vendor)
        row = lists.get(role.value)
        offered = set(tools.names)
        checked = set(choice.tools) if choice.is_list else offered
        allowlists = selectors.allowlists(self.organization.id)
        changes = tools.changes()
        context = {
            **self._frame(tools, role),
            "row": row,
            "allowed": len(offered.intersection(row.tools)) if row else len(offered),
            "offered": len(offered),
            "all_tokens": tools.preview(role, {}).about,
            "role_tokens": tools.preview(role, allowlists).about,
            "choice": choice,
            "version": (row.version if row else "") if conflict else choice.version,
            **self._page_part(tools, checked),
            "vanished": [(name, name in checked) for name in self._vanished(row, choice, offered)],
            "changes": changes,
            "waiting": tools.waiting,
            "shown": [change.row for change in changes if not change.is_listed_only],
            "fingerprint": fingerprint_of(tools.rows),
            "max_counted": MAX_COUNTED,
            "other_roles": [other.value for other in Role if other is not role and other.value in lists],
            "asks_about_empty": asks_about_empty,
            "conflict": conflict,
            "fault": fault,
        }
        return self.page("proxy/tool_access.html", context, status=status)

    def _page_part(self, tools: ToolReview, checked: set[str]) -> dict[str, Any]:
        """One page of the checklist; `elsewhere` are the checked tools on other pages."""
        page = _page_number(self.request.GET.get("page", ""), tools.pages)
        on_page = tools.tools(page)
        on_this_page = {tool.name for tool in on_page}
        use = tool_use(self.organization.id, tools.vendor.slug, sorted(on_this_page), clock.now() - USED_WITHIN)
        return {
            "tools": [(tool, tool.name in checked, use.get(tool.name)) for tool in on_page],
            "elsewhere": [name for name in tools.names if name in checked and name not in on_this_page],
            "page": page,
            "pages": range(1, tools.pages + 1),
        }

    @staticmethod
    def _vanished(row: ToolAllowlist | None, choice: Choice, offered: set[str]) -> list[str]:
        """Names on a list that the vendor no longer offers."""
        listed = [*(row.tools if row else []), *(choice.tools if choice.is_list else [])]
        return [name for name in dict.fromkeys(listed) if name not in offered]

    def _frame(self, tools: ToolReview, role: Role) -> dict[str, Any]:
        vendor = tools.vendor
        state = health.read(coordination.current(), [vendor.slug])[vendor.slug]
        return {
            "vendor": vendor,
            "role": role.value,
            "roles": [each.value for each in Role],
            "may_edit": self.membership.has_role(Role.OWNER),
            "owners": selectors.people_who_may(self.organization, Role.OWNER),
            "is_connected": bool(credential_summaries(self.organization, vendor=vendor.slug)),
            "looked_at": selectors.looked_at(self.organization, vendor.slug),
            "is_down": state.status is HealthStatus.DOWN,
        }

    def _back(self, vendor: Vendor) -> HttpResponse:
        role = self.request.POST.get("role") or Role.MEMBER.value
        # Redirect after POST, so that a reload does not repeat the change.
        path = reverse("proxy_pages:tool-access", args=[self.organization.id, vendor.slug])
        return redirect(f"{path}?{urlencode({'role': role_named(role).value})}")


def _page_number(raw: str, pages: int) -> int:
    # The nearest existing page.
    return min(max(int(raw), 1), pages) if raw.isascii() and raw.isdigit() and len(raw) < 6 else 1


def _saved(role: Role, before: ToolAllowlist | None, choice: Choice, tools: ToolReview) -> str:
    """The change in words, as the audit log also has it."""
    offered = set(tools.names)
    was = set(before.tools) if before else offered
    now = set(choice.tools) if choice.is_list else offered
    state = f"{len(now & offered)} of {len(offered)} tools allowed" if choice.is_list else "all tools allowed"
    return f"Saved for the role {role.value}: {state} (+{len(now - was)} \N{MINUS SIGN}{len(was - now)})."
