"""Test connection: whether the reader's own calls would reach each connected vendor, now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from credentials.selectors import connected_vendors
from gateway.catalog import registry
from gateway.catalog.vendor import Vendor
from gateway.lib.errors import DomainError, NotFound
from gateway.lib.translated import translated
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.signed_in import is_by_htmx
from orgs import selectors
from orgs.roles import Role
from proxy.control_plane.calls_from_pages import PageCaller
from proxy.control_plane.connection_test import CONNECTION_TEST, ConnectionResult, ask_vendors
from proxy.outcomes import Denial, Denied, Failed, RateLimited, VendorFault
from proxy.pages.run_result import fault_words


@dataclass(frozen=True, slots=True)
class TestedRow:
    """One vendor in the list. `result` is None before it was asked; `remedy` says who can mend a problem."""

    vendor: Vendor
    result: ConnectionResult | None = None
    heading: str = ""
    remedy: str = ""
    url: str = ""


class ConnectionTestPage(OrgPage):
    """GET, POST /orgs/:orgId/setup/test[?vendor=]. A GET asks no vendor, a POST all of the list or one. Spec: D155"""

    gates = {"GET": Gate(Role.MEMBER), "POST": Gate(Role.MEMBER, organization_limit=settings.VENDOR_REQUESTS)}
    title = gettext_lazy("Test connection")
    nav_route = "proxy_pages:setup"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._show([TestedRow(vendor) for vendor in self._vendors(request.GET.get("vendor", ""))])

    def post(self, request: HttpRequest) -> HttpResponse:
        """Raises: NotFound."""
        vendors, refusal, status = self._vendors(request.POST.get("vendor", "")), "", 200
        try:
            rows = [self._row(each) for each in ask_vendors(self._caller(), vendors)]
        except DomainError as fault:
            rows = [TestedRow(vendor, heading=fault.message) for vendor in vendors]
            refusal, status = fault.message, fault.status
        if is_by_htmx(request) and rows:
            # A refusal is a row as well: HTMX shows no answer with another status.
            return render(request, "proxy/_connection_test.html", {"row": rows[0], "organization": self.organization})
        return self._show(rows, refusal=refusal, status=status, is_asked=True)

    def _vendors(self, slug: str) -> list[Vendor]:
        """The connected ones, or the one with this slug."""
        catalog = registry.load()
        found = [vendor for each in connected_vendors(self.organization) if (vendor := catalog.get(each))]
        if not slug:
            return sorted(found, key=lambda vendor: vendor.name.lower())
        chosen = [vendor for vendor in found if vendor.slug == slug]
        if not chosen:
            raise NotFound
        return chosen

    def _show(
        self, rows: Sequence[TestedRow], *, refusal: str = "", status: int = 200, is_asked: bool = False
    ) -> HttpResponse:
        context = {"rows": rows, "refusal": refusal, "is_asked": is_asked, "is_admin": self._is_admin}
        return self.page("proxy/connection_test.html", context, status=status)

    @property
    def _is_admin(self) -> bool:
        return self.membership.has_role(Role.ADMIN)

    def _caller(self) -> PageCaller:
        request: Any = self.request
        return PageCaller(
            self.actor.id, self.organization.id, CONNECTION_TEST, request.request_id, ip_address=request.ip_address
        )

    def _row(self, result: ConnectionResult) -> TestedRow:
        vendor = result.vendor
        match result.problem:
            case None:
                return TestedRow(vendor, result)
            case RateLimited():
                text = _("Try again in %(seconds)s s.") % {"seconds": result.problem.retry_after_s}
                return TestedRow(vendor, result, _("Too many requests"), text)
            case Denied():
                return TestedRow(vendor, result, _("Refused"), self._remedy(result.problem), result.problem.page)
            case Failed():
                return TestedRow(
                    vendor, result, fault_words(result.problem.fault, vendor.name), self._mending(result.problem)
                )

    def _remedy(self, denied: Denied) -> str:
        helps = denied.denial in {Denial.NO_SERVER_ACCESS, Denial.NO_CREDENTIALS, Denial.UNUSABLE_CREDENTIALS}
        return f"{denied.text} {self._admins()}" if helps and not self._is_admin else denied.text

    def _mending(self, failed: Failed) -> str:
        if failed.fault is not VendorFault.REJECTED_CREDENTIALS:
            return translated(failed.detail)
        if self._is_admin:
            return _("Replace the credentials in the vendor’s settings.")
        return _("An admin can replace the credentials.") + " " + self._admins()

    def _admins(self) -> str:
        names = ", ".join(selectors.people_who_may(self.organization, Role.ADMIN))
        return _("Admins: %(names)s.") % {"names": names}
