"""Base pages that store and replace one vendor's credentials."""

from __future__ import annotations

from typing import Any, ClassVar
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import Promise, cached_property
from django.utils.translation import gettext, ngettext

from credentials.credential_scope import CredentialScope
from credentials.errors import CredentialRejected, CredentialUnconfirmed
from credentials.pages.forms import CredentialForm
from credentials.pages.rows import shown_rows
from credentials.rejections import SummaryWithRejection, summaries_with_rejection
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib.translated import translated
from gateway.web.form_page import OrgFormPage
from proxy.control_plane.connect_vendor import Connected, LoadedTools, load_tools
from proxy.control_plane.credential_holder import CredentialHolder, HolderFinder


class VendorFieldsPage(OrgFormPage[CredentialForm]):
    """A form of the vendor's fields. Never shows a value. Spec: §4.6 · D62, D63, D170"""

    # Messages. `vendor` and `holder` are names; `detail` says why the vendor did not confirm.
    accepted: ClassVar[str | Promise]
    unchecked: ClassVar[str | Promise]

    @cached_property
    def vendor(self) -> Vendor:
        return registry.known_vendor(self.kwargs["vendor"])

    @cached_property
    def rows(self) -> list[SummaryWithRejection]:
        return summaries_with_rejection(self.organization, vendor=self.vendor.slug)

    @property
    def back(self) -> str:
        raise NotImplementedError

    @property
    def stored(self) -> SummaryWithRejection | None:
        raise NotImplementedError

    @property
    def holder_name(self) -> str:
        return self.organization.name

    def store(self, form: CredentialForm, *, anyway: bool) -> Connected:
        raise NotImplementedError

    def new_form(self, data: QueryDict | None = None) -> CredentialForm:
        return CredentialForm(self.vendor, data)

    def save(self, form: CredentialForm) -> HttpResponse:
        try:
            connected = self.store(form, anyway=self.request.POST.get("anyway") == "1")
        except CredentialUnconfirmed as refusal:
            return self.show(form, status=refusal.status, unconfirmed=translated(refusal.message))
        except CredentialRejected as refusal:
            form.add_error(None, translated(refusal.message))
            return self.show(form, status=refusal.status, is_rejected=True)
        if connected.check.validated:
            self._tell_tools(load_tools(self.organization, self.vendor, connected.credential))
        else:
            messages.warning(self.request, self._text(self.unchecked, detail=translated(connected.check.detail)))
        return redirect(self.back)

    def _tell_tools(self, loaded: LoadedTools) -> None:
        messages.success(self.request, f"{self._text(self.accepted)} {counted_tools(loaded.count)}".rstrip())
        if loaded.count is None:
            messages.warning(self.request, tools_not_loaded(loaded))

    def _text(self, text: str | Promise, **parts: str) -> str:
        return str(text) % {"vendor": self.vendor.name, "holder": self.holder_name, **parts}

    def context(self) -> dict[str, Any]:
        shown = shown_rows(self.organization.id, self.rows)
        stored = self.stored
        return {
            "vendor": self.vendor,
            "back": self.back,
            "stored": stored,
            "stored_row": next((row for row in shown if row.stored is stored), None),
            "rows": shown,
            "organization_has_own": any(row.scope is CredentialScope.ORGANIZATION for row in self.rows),
        }


class CredentialPage(VendorFieldsPage):
    """GET, POST …/:vendor of a holder: the organization, a team or an agent."""

    find_holder: HolderFinder
    # The page that names the holder.
    back_route: ClassVar[str]

    @cached_property
    def holder(self) -> CredentialHolder:
        return self.find_holder(self.organization, self.kwargs)

    @property
    def holder_name(self) -> str:
        return self.holder.row.name

    @property
    def back(self) -> str:
        rows: tuple[UUID, ...] = () if self.holder.row == self.organization else (self.holder.row.id,)
        return reverse(self.back_route, args=[self.organization.id, *rows])

    @property
    def stored(self) -> SummaryWithRejection | None:
        return next((row for row in self.rows if self.holder.holds(row)), None)

    def store(self, form: CredentialForm, *, anyway: bool) -> Connected:
        return self.holder.connect(actor=self.actor, vendor=self.vendor, fields=form.values(), anyway=anyway)

    def context(self) -> dict[str, Any]:
        return {**super().context(), "holder": self.holder.row}


def counted_tools(tools: int | None) -> str:
    """A sentence; empty where the vendor did not say."""
    if tools is None:
        return ""
    return ngettext("%(count)s tool found.", "%(count)s tools found.", tools) % {"count": tools}


def tools_not_loaded(loaded: LoadedTools) -> str:
    return gettext("Its tools couldn’t be loaded: %(problem)s You can refresh them on its “Tools” page.") % {
        "problem": translated(loaded.problem)
    }
