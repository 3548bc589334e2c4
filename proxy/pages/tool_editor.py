"""The editor of one list of a vendor's tools: a checklist, changes to review, a preview. For roles and agents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.functional import cached_property
from django.utils.translation import gettext, ngettext

from audit.selectors import MAX_COUNTED, tool_use
from credentials.selectors import CredentialSummary, credential_summaries
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.coordination import backend as coordination
from gateway.lib import clock
from gateway.lib.errors import DomainError, NotFound
from gateway.lib.translated import sentences_of, translated
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from orgs import selectors
from orgs.errors import AllowlistChanged, ToolsChanged
from orgs.roles import Role
from orgs.services.tool_approval import Review, approve_shown_tools, fingerprint_of
from proxy.control_plane import discovery
from proxy.control_plane.health import state_cache as health
from proxy.control_plane.health.states import HealthStatus
from proxy.control_plane.tool_review_listing import ToolReview
from proxy.credential_lists import list_owners
from proxy.pages.tool_choice import Choice, StoredList, from_form, from_row, proposed

# Period of the usage figures beside each tool.
USED_WITHIN = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Holder:
    """Whose list is edited, in words: `name` of one, `plural` as the subject of a sentence, `query` of its pages."""

    name: str
    plural: str
    query: str = ""


class ToolEditorPage(OrgPage):
    """GET, POST of one list at one vendor. Only `discover` asks the vendor. Spec: §4.9 · D75-D78, D165 · ux.md 7"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.OWNER),
        "POST approve": Gate(Role.OWNER),
        "POST discover": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS),
    }
    template: str
    preview_template: str

    @abstractmethod
    def holder(self) -> Holder:
        """Raises: NotFound."""

    @abstractmethod
    def stored(self, vendor: Vendor) -> StoredList | None: ...

    @abstractmethod
    def store(self, vendor: Vendor, choice: Choice, review: Review) -> None:
        """Raises: AllowlistChanged and other refusals."""

    @abstractmethod
    def may_call(self, vendor: Vendor) -> Callable[[str, bool], bool]:
        """The rule of calls for a tool, by its name and whether it is read-only."""

    def others(self, vendor: Vendor) -> Mapping[str, Sequence[str]]:
        """Lists to start from, by their names."""
        return {}

    def own_context(self, vendor: Vendor) -> dict[str, Any]:
        return {}

    def get(self, request: HttpRequest, vendor: str, **path: Any) -> HttpResponse:
        """The stored list, or the proposal of `?start=`."""
        known = registry.known_vendor(vendor)
        self.holder()
        tools = self._tools(known)
        if request.GET.get("view") == "preview":
            return self._preview(tools)
        begin, row = request.GET.get("start", ""), self.stored(known)
        choice = proposed(begin, tools, row, self.others(known)) if begin else from_row(row)
        return self._page(tools, choice, row)

    def post(self, request: HttpRequest, vendor: str, **path: Any) -> HttpResponse:
        known = registry.known_vendor(vendor)
        self.holder()
        match request.POST.get("action"):
            case "discover":
                return self._discover(known)
            case "approve":
                return self._approve(known)
        return self._save(known)

    @cached_property
    def _credentials(self) -> list[CredentialSummary]:
        """The vendor's."""
        return credential_summaries(self.organization, vendor=self.kwargs["vendor"])

    def _tools(self, vendor: Vendor) -> ToolReview:
        return ToolReview(self.organization, vendor, list_owners(self._credentials))

    def _discover(self, vendor: Vendor) -> HttpResponse:
        try:
            found = discovery.discover_for(self.membership, vendor)
        except NotFound:
            raise
        except discovery.NotConnected:
            messages.error(
                self.request,
                gettext("%(name)s isn’t connected. The last list is kept.") % {"name": vendor.name},
            )
        except DomainError as refusal:
            messages.error(
                self.request,
                gettext("%(name)s couldn’t be reached: %(message)s The saved list is kept.")
                % {"name": vendor.name, "message": translated(refusal.message)},
            )
        else:
            parts = {"name": vendor.name, "tools": len(found.definitions), "changed": len(found.changed)}
            text = gettext("%(name)s offers %(tools)s tools, %(changed)s of them new or changed.")
            messages.success(
                self.request, (text if found.changed else gettext("%(name)s offers %(tools)s tools.")) % parts
            )
        return self._back()

    def _approve(self, vendor: Vendor) -> HttpResponse:
        try:
            count = approve_shown_tools(
                actor=self.actor, organization=self.organization, vendor=vendor.slug, review=self._approved(vendor)
            )
        except ToolsChanged as refusal:
            messages.error(self.request, translated(refusal.message))
        else:
            text = ngettext(
                "%(count)s change approved. Permissions are unchanged.",
                "%(count)s changes approved. Permissions are unchanged.",
                count,
            )
            messages.success(self.request, text % {"count": count})
        return self._back()

    def _save(self, vendor: Vendor) -> HttpResponse:
        tools, choice = self._tools(vendor), from_form(self.request.POST)
        # An empty list blocks the whole vendor for its holder, so it needs confirmation.
        if choice.is_list and not choice.tools and self.request.POST.get("confirm") != "empty":
            return self._page(tools, choice, self.stored(vendor), asks_about_empty=True, status=422)
        before = self.stored(vendor)
        try:
            self.store(vendor, choice, self._review())
        except AllowlistChanged as refusal:
            return self._page(tools, choice, self.stored(vendor), conflict=refusal, status=409)
        except DomainError as refusal:
            if refusal.status not in {400, 422}:
                raise
            return self._page(tools, choice, self.stored(vendor), fault=sentences_of(refusal), status=422)
        messages.success(self.request, _saved(self.holder(), before, choice, tools))
        if choice.is_list and fingerprint_of(tools.rows) != self._review().fingerprint:
            messages.warning(
                self.request, gettext("%(message)s Nothing was approved.") % {"message": ToolsChanged.message}
            )
        return self._back()

    def _review(self) -> Review:
        return Review(self.request.POST.get("fingerprint", ""), frozenset(self.request.POST.getlist("shown")))

    def _approved(self, vendor: Vendor) -> Review:
        """The changes on the page; with `all`, every change that the page counted."""
        review = self._review()
        if self.request.POST.get("all") != "1":
            return review
        # The fingerprint says whether these are the changes that were counted.
        return replace(review, shown=frozenset(str(row.pk) for row in self._tools(vendor).unapproved))

    def _preview(self, tools: ToolReview) -> HttpResponse:
        preview = tools.preview(self.may_call(tools.vendor))
        # Without lists: the comparison shows how many tokens they save.
        context = {"preview": preview, "everything": tools.preview(), **self._frame(tools)}
        return self.page(self.preview_template, context)

    def _page(
        self,
        tools: ToolReview,
        choice: Choice,
        row: StoredList | None,
        *,
        asks_about_empty: bool = False,
        conflict: AllowlistChanged | None = None,
        fault: str = "",
        status: int = 200,
    ) -> HttpResponse:
        offered = set(tools.names)
        checked = set(choice.tools) if choice.is_list else offered
        changes = tools.changes()
        context = {
            **self._frame(tools),
            "row": row,
            "allowed": len(offered.intersection(row.tools)) if row else len(offered),
            "offered": len(offered),
            "all_tokens": tools.preview().about,
            "allowed_tokens": tools.preview(self.may_call(tools.vendor)).about,
            "choice": choice,
            "version": (row.version if row else "") if conflict else choice.version,
            **self._page_part(tools, checked),
            "vanished": [(name, name in checked) for name in self._vanished(row, choice, offered)],
            "changes": changes,
            "waiting": tools.waiting,
            "asks_about_all": self.request.GET.get("approve") == "all",
            "waiting_by_state": tools.waiting_by_state(),
            "shown": [change.row for change in changes if not change.is_listed_only],
            "unread": tools.waiting - sum(not change.is_listed_only for change in changes),
            "fingerprint": fingerprint_of(tools.rows),
            "max_counted": MAX_COUNTED,
            "others": list(self.others(tools.vendor)),
            "asks_about_empty": asks_about_empty,
            "conflict": conflict,
            "fault": fault,
        }
        return self.page(self.template, context, status=status)

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
    def _vanished(row: StoredList | None, choice: Choice, offered: set[str]) -> list[str]:
        """Names on a list that the vendor no longer offers."""
        listed = [*(row.tools if row else []), *(choice.tools if choice.is_list else [])]
        return [name for name in dict.fromkeys(listed) if name not in offered]

    def _frame(self, tools: ToolReview) -> dict[str, Any]:
        vendor, holder, may_edit = tools.vendor, self.holder(), self.membership.has_role(Role.OWNER)
        state = health.read(coordination.current(), [vendor.slug])[vendor.slug]
        return {
            "vendor": vendor,
            "holder": holder,
            "own": f"?{holder.query}",
            "with_own": f"?{holder.query}&" if holder.query else "?",
            "may_edit": may_edit,
            "owners": () if may_edit else selectors.people_who_may(self.organization, Role.OWNER),
            "is_connected": bool(self._credentials),
            "looked_at": selectors.looked_at(self.organization, vendor.slug),
            "is_down": state.status is HealthStatus.DOWN,
            **self.own_context(vendor),
        }

    def _back(self) -> HttpResponse:
        # Redirect after POST, so that a reload does not repeat the change.
        query = self.holder().query
        return redirect(f"{self.request.path}?{query}" if query else self.request.path)


def _page_number(raw: str, pages: int) -> int:
    # The nearest existing page.
    return min(max(int(raw), 1), pages) if raw.isascii() and raw.isdigit() and len(raw) < 6 else 1


def _saved(holder: Holder, before: StoredList | None, choice: Choice, tools: ToolReview) -> str:
    """The change in words, as the audit log also has it."""
    offered = set(tools.names)
    was = set(before.tools) if before else offered
    now = set(choice.tools) if choice.is_list else offered
    parts = {"holder": holder.name, "added": len(now - was), "removed": len(was - now)}
    if not choice.is_list:
        return gettext("Saved for %(holder)s: all tools allowed (%(added)s added, %(removed)s removed).") % parts
    parts |= {"allowed": len(now & offered), "offered": len(offered)}
    return (
        gettext(
            "Saved for %(holder)s: %(allowed)s of %(offered)s tools allowed (%(added)s added, %(removed)s removed)."
        )
        % parts
    )
