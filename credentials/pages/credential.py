"""Base pages that store, replace and delete one vendor's credentials of any holder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseRedirect

from credentials.credential_scope import CredentialScope
from credentials.pages.forms import CredentialForm
from credentials.rejections import summaries_with_rejection
from credentials.selectors import CredentialSummary, credential_at
from credentials.services.credentials import delete_credential
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import DomainError
from gateway.web.form_errors import show_on
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
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


class CredentialPage(OrgPage):
    """GET, POST …/:vendor. Never shows a value. Spec: §4.6 · D62, D63"""

    template: ClassVar[str]
    # Messages. {vendor} and {holder} are names; {detail} in `unchecked` says why the vendor did not confirm.
    accepted: ClassVar[str]
    unchecked: ClassVar[str]
    deleted: ClassVar[str]
    delete_action: ClassVar[str] = "delete"

    def holder(self) -> CredentialHolder:
        """The holder that the path names. Raises: NotFound."""
        raise NotImplementedError

    def get(self, request: HttpRequest, vendor: str, **path: object) -> HttpResponse:
        known = registry.known_vendor(vendor)
        return self._page(known, self.holder(), CredentialForm(known))

    def post(self, request: HttpRequest, vendor: str, **path: object) -> HttpResponse:
        known, holder = registry.known_vendor(vendor), self.holder()
        if request.POST.get("action") == self.delete_action:
            return self._delete(known, holder)
        form = CredentialForm(known, request.POST)
        if form.is_valid():
            try:
                return self._store(known, holder, form)
            except DomainError as refusal:
                show_on(form, refusal)
        return self._page(known, holder, form, status=422)

    def _store(self, vendor: Vendor, holder: CredentialHolder, form: CredentialForm) -> HttpResponse:
        check = connect_vendor(
            actor=self.actor,
            organization=self.organization,
            vendor=vendor,
            fields=form.values(),
            scope=holder.scope,
            team=holder.team,
            service_client=holder.service_client,
        ).check
        if check.validated:
            messages.success(self.request, self.accepted.format(vendor=vendor.name, holder=holder.name))
        else:
            text = self.unchecked.format(vendor=vendor.name, holder=holder.name, detail=check.detail)
            messages.warning(self.request, text)
        return HttpResponseRedirect(holder.back)

    def _delete(self, vendor: Vendor, holder: CredentialHolder) -> HttpResponse:
        found = credential_at(
            self.organization,
            vendor.slug,
            holder.scope,
            team_id=holder.team_id,
            service_client_id=holder.service_client_id,
        )
        delete_credential(actor=self.actor, credential=found)
        messages.success(self.request, self.deleted.format(vendor=vendor.name, holder=holder.name))
        return HttpResponseRedirect(holder.back)

    def _page(
        self, vendor: Vendor, holder: CredentialHolder, form: CredentialForm, *, status: int = 200
    ) -> HttpResponse:
        rows = summaries_with_rejection(self.organization, vendor=vendor.slug)
        stored = next((row for row in rows if holder.holds(row)), None)
        context = {
            "vendor": vendor,
            "holder": holder,
            "form": form,
            "stored": stored,
            "rows": rows,
            "organization_has_own": any(row.scope is CredentialScope.ORGANIZATION for row in rows),
            "delete_action": self.delete_action,
        }
        return self.page(self.template, context, status=status)


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
