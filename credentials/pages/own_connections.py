"""The person's own connections to vendors, in all organizations."""

from __future__ import annotations

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, gettext_lazy

from credentials.selectors import own_connections
from credentials.services.vendor_connections import end_own_connection
from gateway.catalog import registry
from gateway.lib.errors import DomainError
from gateway.lib.translated import translated
from gateway.web import onward, rate
from gateway.web.onward import continuing
from gateway.web.signed_in import SignedInPage
from orgs import membership_check
from orgs.selectors import memberships
from proxy.control_plane.vendor_sign_in import PERSON, begin_sign_in, offers_for


class OwnConnectionsPage(SignedInPage):
    """GET, POST /profile/connections. Shows no token."""

    title = gettext_lazy("My connections")

    def get(self, request: HttpRequest) -> HttpResponse:
        offers = offers_for(memberships(self.actor), own_connections(self.actor), registry.load())
        wanted = request.GET.get("vendor", ""), request.GET.get("org_id", "")
        # The vendor that the person came for is on top, then those that are connected.
        offers.sort(key=lambda each: ((each.vendor.slug, str(each.organization.id)) != wanted, each.connection is None))
        return render(request, "credentials/own_connections.html", {**self.frame(), "offers": offers})

    def post(self, request: HttpRequest) -> HttpResponse:
        """Raises: NotFound; RateLimited."""
        rate.count(request, settings.CREDENTIAL_STORE)
        membership = membership_check.require_membership(self.actor, request.POST.get("org_id", ""))
        slug = request.POST.get("vendor", "")
        try:
            if "disconnect" in request.POST:
                end_own_connection(membership=membership, vendor=slug)
                messages.success(request, gettext("Disconnected."))
                return redirect("own-connections")
            key, vendor = request.session.session_key or "", registry.known_vendor(slug)
            address = begin_sign_in(membership=membership, vendor=vendor, level=PERSON, session_key=key)
        except DomainError as refusal:
            messages.error(request, translated(refusal.message))
            return redirect("own-connections")
        page = render(request, onward.TEMPLATE, {**self.frame(), **onward.context_of(vendor, address)})
        return continuing(page, address)
