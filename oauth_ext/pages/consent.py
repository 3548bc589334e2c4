"""The consent page: the client, its redirect host, the vendors it would reach, and missing credentials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from csp.decorators import csp_update
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from credentials.selectors import people_vendors
from gateway.lib import clock
from gateway.lib.errors import DomainError, NotFound
from gateway.lib.translated import sentences_of, translated
from gateway.web import onward
from gateway.web.admission import pass_gate
from gateway.web.gate import Gate, PlanFunction
from gateway.web.onward import continuing
from gateway.web.signed_in import SignedInPage
from oauth_ext import cimd_documents, person_pages, redirect_uris, scopes
from oauth_ext.client_warnings import AskingClient, warnings_of
from oauth_ext.models import AuthorizationRequest, Client
from oauth_ext.pages.vendor_states import VendorState, message_for_admins, missing, vendor_states, who_can_help
from oauth_ext.services.consent import RequestGone, allow_request, deny_request, waiting_request
from orgs import membership_check
from orgs.models import Membership
from orgs.roles import Role
from orgs.selectors import memberships
from orgs.services.access_requests import create_request
from proxy.control_plane.connect_vendor import connect_vendor
from proxy.control_plane.vendor_sign_in import ORGANIZATION, begin_sign_in

_ASK = Gate(Role.MEMBER, limit=settings.ACCESS_REQUEST_CREATE)
_CONNECT_OWN = Gate(Role.MEMBER, limit=settings.CREDENTIAL_STORE)
_CONNECT = Gate(Role.ADMIN, plan=PlanFunction.CREDENTIALS, limit=settings.CREDENTIAL_STORE)


class ConsentPage(SignedInPage):
    """GET, POST /oauth/authorize/consent?request=…: organization, access and consent. Spec: D119, D142"""

    title = gettext_lazy("Connect an app")

    # From the database. The browser sends only the decision, the organization and credentials.
    waiting: AuthorizationRequest

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return self.handle_no_permission()
        try:
            self.waiting = waiting_request(
                actor=self.actor,
                session_key=request.session.session_key or "",
                request_id=request.GET.get("request", ""),
            )
            # The page's forms redirect to the client's address.
            allowed = csp_update({"form-action": redirect_uris.form_action_sources(self.waiting.redirect_uri)})
            view: Callable[..., HttpResponseBase] = allowed(super().dispatch)
            return view(request, *args, **kwargs)
        except (RequestGone, NotFound) as refusal:
            return person_pages.error_page(request, refusal.status, translated(refusal.message))

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(self._chosen(request.GET.get("organization", "")))

    def post(self, request: HttpRequest) -> HttpResponse:
        action = request.POST.get("action", "")
        if action == "cancel":
            return person_pages.back_to_client(deny_request(actor=self.actor, request=self.waiting))
        organization_id = request.POST.get("organization", "")
        if action == "connect":
            return self._connect(self._chosen(organization_id), request.POST.get("vendor", ""))
        if action == "sign-in":
            return self._sign_in(self._chosen(organization_id))
        if action == "ask":
            return self._ask(organization_id, request.POST.get("vendor", ""))
        if action != "allow":
            return self._page(self._chosen(organization_id), status=400)
        # Allowed even while no vendor works for the person; the page names the missing steps.
        membership = membership_check.require_membership(self.actor, organization_id)
        location = allow_request(actor=membership.user, request=self.waiting, org_id=membership.organization_id)
        return person_pages.back_to_client(location)

    def _chosen(self, organization_id: str) -> Membership | None:
        mine = list(memberships(self.actor))
        return next((each for each in mine if str(each.organization_id) == organization_id), next(iter(mine), None))

    def _connect(self, membership: Membership | None, slug: str) -> HttpResponse:
        states = [] if membership is None else vendor_states(membership, self.waiting.scope.split())
        chosen = next((each for each in states if each.vendor.slug == slug and each.may_connect), None)
        if membership is None or chosen is None:
            return self._page(membership, status=400)
        typed = {each.name: self.request.POST.get(f"field-{each.name}", "") for each in chosen.vendor.fields}
        try:
            # The same gate as on every other page that stores credentials.
            pass_gate(self.request, membership.user, _CONNECT, str(membership.organization_id))
            connect_vendor(
                actor=membership.user, organization=membership.organization, vendor=chosen.vendor, fields=typed
            )
        except DomainError as refusal:
            return self._page(membership, status=refusal.status, faulty=_faulty(chosen, typed, refusal))
        return self._page(membership)

    def _sign_in(self, membership: Membership | None) -> HttpResponse:
        """On to the vendor's sign-in, from which the person comes back to this page."""
        slug, level = self.request.POST.get("vendor", ""), self.request.POST.get("level", "")
        states = [] if membership is None else vendor_states(membership, self.waiting.scope.split())
        chosen = next((each for each in states if each.vendor.slug == slug and level in each.sign_ins), None)
        if membership is None or chosen is None:
            return self._page(membership, status=400)
        back = self._address(str(membership.organization_id))
        try:
            gate = _CONNECT if level == ORGANIZATION else _CONNECT_OWN
            pass_gate(self.request, membership.user, gate, str(membership.organization_id))
            address = begin_sign_in(
                membership=membership,
                vendor=chosen.vendor,
                level=level,
                session_key=self.request.session.session_key or "",
                back=back,
            )
        except DomainError as refusal:
            messages.error(self.request, translated(refusal.message))
            return redirect(back)
        return continuing(self.page(onward.TEMPLATE, onward.context_of(chosen.vendor, address)), address)

    def _address(self, organization_id: str) -> str:
        """Of this page, with an organization chosen."""
        query = urlencode({"request": self.waiting.id, "organization": organization_id})
        return f"{self.request.path}?{query}"

    def _ask(self, organization_id: str, slug: str) -> HttpResponse:
        """Ask for access, and show the page again."""
        try:
            passed = pass_gate(self.request, self.actor, _ASK, organization_id)
            if passed.membership is None:
                raise NotFound
            organization = passed.membership.organization
            create_request(
                actor=self.actor,
                organization=organization,
                vendor=slug,
                reason=self.request.POST.get("reason", ""),
                connected_vendors=lambda: people_vendors(organization),
            )
        except DomainError as refusal:
            messages.error(self.request, sentences_of(refusal))
        return redirect(self._address(organization_id))

    def _page(
        self, membership: Membership | None, *, status: int = 200, faulty: VendorState | None = None
    ) -> HttpResponse:
        asked = self.waiting.scope.split()
        vendors = [] if membership is None else vendor_states(membership, asked)
        if faulty is not None:
            vendors = [faulty if each.vendor.slug == faulty.vendor.slug else each for each in vendors]
        context = {
            "waiting": self.waiting,
            **_about_client(self.waiting.client, self.waiting.redirect_uri),
            "everything": not scopes.EVERYTHING.isdisjoint(asked),
            "chosen": membership,
            "vendors": vendors,
            "working": [each.vendor.name for each in vendors if each.works],
            "missing": missing(vendors),
            "admins": [] if membership is None else who_can_help(membership),
            "message": "" if membership is None else message_for_admins(membership, vendors),
        }
        return self.page("oauth_ext/consent.html", context, status=status)


def _about_client(client: Client, redirect_uri: str) -> dict[str, object]:
    by_document = client.registration_source == Client.RegistrationSource.CIMD
    vouching_host = cimd_documents.host_of(client.client_id) if by_document else ""
    age = clock.now() - client.created
    asking = AskingClient(client.name, redirect_uri, client.registered_itself, vouching_host, age)
    return {
        "warnings": warnings_of(asking),
        "minutes_old": max(1, int(age.total_seconds() // 60)),
        "client_name": client.name or gettext("An app without a name"),
        "unverified": client.registered_itself,
        # The only fact about such a client that it does not merely claim.
        "vouching_host": vouching_host,
        "redirect_host": redirect_uris.shown_host(redirect_uri),
        "on_the_computer": redirect_uris.stays_on_the_computer(redirect_uri),
    }


def _faulty(state: VendorState, typed: dict[str, str], refusal: DomainError) -> VendorState:
    # Typed secrets are never rendered.
    kept = {name: value for name, value in typed.items() if name not in state.vendor.secret_fields}
    return replace(state, typed=kept, errors=_errors_of(refusal))


def _errors_of(refusal: DomainError) -> dict[str, list[str]]:
    found = refusal.fields or {"fields": [refusal.message]}
    return {name: [translated(text) for text in texts] for name, texts in found.items()}
