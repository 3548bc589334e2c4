"""Where a vendor's sign-in comes back to, and the document that describes the gateway as its client."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy
from django.views.decorators.http import require_safe

from credentials.vendor_asking import client_document_url, redirect_uri
from credentials.vendor_oauth.requests import CLIENT_NAME
from gateway.lib.errors import DomainError
from gateway.lib.translated import translated
from gateway.web.signed_in import SignedInPage
from proxy.control_plane.vendor_sign_in import ORGANIZATION, CallbackQuery, SignedIn, finish_sign_in

DOCUMENT_AGE_S = 3_600


class VendorCallbackPage(SignedInPage):
    """GET /vendor-oauth/callback: ends a sign-in that this browser began. Contract: 8"""

    http_method_names = ["get", "head"]
    title = gettext_lazy("Vendor sign-in")

    def handle_no_permission(self) -> HttpResponseRedirect:
        # The way through the sign-in would write the code into addresses and into the session.
        return redirect_to_login(reverse("own-connections"))

    def get(self, request: HttpRequest) -> HttpResponse:
        values = {name: request.GET.getlist(name) for name in ("state", "code", "iss", "error")}
        first = {name: found[0] if len(found) == 1 else "" for name, found in values.items()}
        # RFC 6749 3.1: no parameter comes twice. Of two issuers, one would be the wrong one.
        is_doubled = any(len(found) > 1 for found in values.values())
        query = CallbackQuery(first["state"], first["code"], first["iss"], first["error"], is_doubled)
        try:
            done = finish_sign_in(actor=self.actor, session_key=request.session.session_key or "", query=query)
        except DomainError as refusal:
            context = {**self.frame(), "refusal": translated(refusal.message)}
            return render(request, "credentials/vendor_callback.html", context, status=refusal.status)
        messages.success(request, gettext("%(vendor)s is connected.") % {"vendor": done.vendor.name})
        return redirect(done.back or _own_page(done))


def _own_page(done: SignedIn) -> str:
    if done.connection.scope.value == ORGANIZATION:
        return reverse("credentials:connection", args=[done.connection.organization_id, done.vendor.slug])
    return reverse("own-connections")


@require_safe
def client_document(request: HttpRequest) -> HttpResponse:
    """GET /vendor-oauth/client.json: its address is the client id. Raises: Http404 where no server could read it."""
    address = client_document_url()
    if not address:
        raise Http404
    response = JsonResponse(
        {
            "client_id": address,
            "client_name": CLIENT_NAME,
            "redirect_uris": [redirect_uri()],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "web",
        }
    )
    response["Cache-Control"] = f"public, max-age={DOCUMENT_AGE_S}"
    return response
