"""Base pages that store, replace and delete one vendor's credentials of any holder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.utils.functional import cached_property

from credentials.credential_scope import CredentialScope
from credentials.pages.forms import CredentialForm
from credentials.rejections import summaries_with_rejection
from credentials.selectors import CredentialSummary, credential_at
from credentials.services.credentials import delete_credential
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from oauth_ext.models import Client
from orgs.models import Team
from orgs.roles import Role
from proxy.control_plane.connect_vendor import connect_vendor


@dataclass(frozen=True, slots=True)
class CredentialHolder:
    """The holder of the credentials, its name, and the address to return to."""

    scope: CredentialScope
    name: str
    back: str
    team: Team | None = None
    service_client: Client | None = None

    @property
    def team_id(self) -> UUID | None:
        return self.team.id if self.team else None

    @property
    def service_client_id(self) -> UUID | None:
        return self.service_client.id if self.service_client else None

    def holds(self, row: CredentialSummary) -> bool:
        own = (self.scope, self.team_id, self.service_client_id)
        return (row.scope, row.team_id, row.service_client_id) == own


class CredentialPage(OrgFormPage[CredentialForm]):
    """GET, POST …/:vendor. Never shows a value. Spec: §4.6 · D62, D63"""

    # Messages. {vendor} and {holder} are names; {detail} in `unchecked` says why the vendor did not confirm.
    accepted: ClassVar[str]
    unchecked: ClassVar[str]
    deleted: ClassVar[str]
    delete_action: ClassVar[str] = "delete"

    @cached_property
    def holder(self) -> CredentialHolder:
        """The holder that the path names. Raises: NotFound."""
        raise NotImplementedError

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
        check = connect_vendor(
            actor=self.actor,
            organization=self.organization,
            vendor=self.vendor,
            fields=form.values(),
            scope=self.holder.scope,
            team=self.holder.team,
            service_client=self.holder.service_client,
        ).check
        if check.validated:
            messages.success(self.request, self._text(self.accepted))
        else:
            messages.warning(self.request, self._text(self.unchecked, detail=check.detail))
        return redirect(self.holder.back)

    def _delete(self) -> HttpResponse:
        found = credential_at(
            self.organization,
            self.vendor.slug,
            self.holder.scope,
            team_id=self.holder.team_id,
            service_client_id=self.holder.service_client_id,
        )
        delete_credential(actor=self.actor, credential=found)
        messages.success(self.request, self._text(self.deleted))
        return redirect(self.holder.back)

    def _text(self, text: str, **parts: str) -> str:
        return text.format(vendor=self.vendor.name, holder=self.holder.name, **parts)

    def context(self) -> dict[str, Any]:
        rows = summaries_with_rejection(self.organization, vendor=self.vendor.slug)
        return {
            "vendor": self.vendor,
            "holder": self.holder,
            "stored": next((row for row in rows if self.holder.holds(row)), None),
            "rows": rows,
            "organization_has_own": any(row.scope is CredentialScope.ORGANIZATION for row in rows),
            "delete_action": self.delete_action,
        }


class HolderCredentialPage(CredentialPage):
    """Credentials of a team or a service client. Spec: §4.6 · D66, D67"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, organization_limit=settings.VENDOR_REQUESTS),
        "POST delete": Gate(Role.ADMIN),
    }
    accepted = "{holder} has credentials of its own for {vendor}. It accepted them."
    unchecked = "The credentials for {vendor} are stored, but could not be checked: {detail}"
    deleted = "{holder} has no credentials of its own for {vendor} any more."
