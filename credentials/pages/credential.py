"""Base pages that store, replace and delete one vendor's credentials of any holder."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.functional import cached_property

from credentials.credential_scope import CredentialScope
from credentials.pages.forms import CredentialForm
from credentials.rejections import summaries_with_rejection
from credentials.services.credentials import delete_credential
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.web.form_page import OrgFormPage
from proxy.control_plane.credential_holder import CredentialHolder, HolderFinder


class CredentialPage(OrgFormPage[CredentialForm]):
    """GET, POST …/:vendor. Never shows a value. Spec: §4.6 · D62, D63"""

    # Messages. {vendor} and {holder} are names; {detail} in `unchecked` says why the vendor did not confirm.
    accepted: ClassVar[str]
    unchecked: ClassVar[str]
    deleted: ClassVar[str]
    delete_action: ClassVar[str] = "delete"

    find_holder: HolderFinder
    # The page that names the holder.
    back_route: ClassVar[str]

    @cached_property
    def holder(self) -> CredentialHolder:
        return self.find_holder(self.organization, self.kwargs)

    @property
    def back(self) -> str:
        rows = () if self.holder.row == self.organization else (self.holder.row.id,)
        return reverse(self.back_route, args=[self.organization.id, *rows])

    @cached_property
    def vendor(self) -> Vendor:
        return registry.known_vendor(self.kwargs["vendor"])

    def new_form(self, data: QueryDict | None = None) -> CredentialForm:
        return CredentialForm(self.vendor, data)

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        if request.POST.get("action") == self.delete_action:
            return self._delete()
        return super().post(request, **path)

    def save(self, form: CredentialForm) -> HttpResponse:
        check = self.holder.connect(actor=self.actor, vendor=self.vendor, fields=form.values()).check
        if check.validated:
            messages.success(self.request, self._text(self.accepted))
        else:
            messages.warning(self.request, self._text(self.unchecked, detail=check.detail))
        return redirect(self.back)

    def _delete(self) -> HttpResponse:
        delete_credential(actor=self.actor, credential=self.holder.credential(self.vendor.slug))
        messages.success(self.request, self._text(self.deleted))
        return redirect(self.back)

    def _text(self, text: str, **parts: str) -> str:
        return text.format(vendor=self.vendor.name, holder=self.holder.row.name, **parts)

    def context(self) -> dict[str, Any]:
        rows = summaries_with_rejection(self.organization, vendor=self.vendor.slug)
        return {
            "vendor": self.vendor,
            "holder": self.holder.row,
            "back": self.back,
            "stored": next((row for row in rows if self.holder.holds(row)), None),
            "rows": rows,
            "organization_has_own": any(row.scope is CredentialScope.ORGANIZATION for row in rows),
            "delete_action": self.delete_action,
        }
