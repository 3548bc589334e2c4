"""Pending invitations: the list, the form that makes one, the page that revokes one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from billing import entitlements
from billing.errors import SubscriptionRequired
from gateway.coordination import backend
from gateway.lib import ids
from gateway.lib.errors import DomainError
from gateway.web import form_idempotency, rate
from gateway.web.form_errors import show_on
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from orgs.models import Invitation
from orgs.roles import Role
from orgs.selectors import pending_invitation, pending_invitations, people_who_may
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation, revoke_invitation


class InvitationForm(forms.Form):
    """Spec: D48, D49"""

    email = forms.EmailField(
        label="E-mail address",
        required=False,
        max_length=254,
        help_text="Only the person who signs in with this address can use the link. Nothing is sent by e-mail.",
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    max_uses = forms.IntegerField(
        label="How many people may join",
        min_value=1,
        max_value=settings.INVITATION_MAX_USES,
        initial=1,
    )
    expires_in_days = forms.IntegerField(
        label="Valid for (days)",
        min_value=1,
        max_value=settings.INVITATION_MAX_DAYS,
        initial=settings.INVITATION_DEFAULT_DAYS,
    )


class InvitationsPage(OrgPage):
    """GET, POST /orgs/:orgId/invitations. Same gate and rate limit as the API."""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, active_plan=True, limit=settings.INVITATION_CREATE),
        "POST link": Gate(Role.ADMIN),
    }
    title = "Invitations"
    nav_route = "orgs:invitations"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._page(InvitationForm())

    def post(self, request: HttpRequest) -> HttpResponse:
        """Create an invitation, or show an existing link. Spec: §4.4 · D49-D51"""
        # Lists show no links: an admin asks for each by a button.
        if request.POST.get("action") == "link":
            return self._show_link()
        form = InvitationForm(request.POST)
        if not form.is_valid():
            return self._page(form, status=422)
        if not form_idempotency.claim_key(request):
            messages.info(request, "That form was already sent. Its invitation is in the list.")
            return redirect("orgs:invitations", self.organization.id)
        try:
            made = create_invitation(actor=self.actor, organization=self.organization, **form.cleaned_data)
        except DomainError as refusal:
            show_on(form, refusal)
            return self._page(form, status=422)
        return self._page(InvitationForm(), link_of=made, status=201)

    def refused(self, refusal: rate.RateLimited | SubscriptionRequired) -> HttpResponse:
        if self.request.method != "POST":
            raise refusal
        # The page shows the refusal above the form and keeps the input.
        typed = {name: self.request.POST.get(name, "") for name in InvitationForm.base_fields}
        return self._page(InvitationForm(initial=typed), status=refusal.status)

    def _show_link(self) -> HttpResponse:
        key = ids.known_id(self.request.POST.get("invitation", ""))
        return self._page(InvitationForm(), link_of=pending_invitation(self.organization, key))

    def _page(self, form: InvitationForm, *, link_of: Invitation | None = None, status: int = 200) -> HttpResponse:
        window = backend.current().peek(settings.INVITATION_CREATE, rate.key_of(self.request))
        is_active = entitlements.is_active(self.organization)
        context: dict[str, Any] = {
            "page": page_of(self.request, pending_invitations(self.organization).select_related("created_by")),
            "form": form,
            "form_key": form_idempotency.new_key(self.request),
            "is_active": is_active,
            "owners": [] if is_active else people_who_may(self.organization, Role.OWNER),
            "window": window,
            "next_in_minutes": -(-window.retry_after_s // 60),
            "is_closed": not is_active or not window.allowed,
        }
        if link_of is not None:
            token = token_of(link_of)
            context["link_of"] = link_of
            context["link"] = None if token is None else f"{settings.BASE_URL}/invite/{token}"
        return self.page("orgs/invitations.html", context, status=status)


class RevokeInvitationPage(OrgPage):
    """GET, POST /orgs/:orgId/invitations/:id/revoke. Needs no active plan."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Revoke invitation"
    nav_route = "orgs:invitations"

    def get(self, request: HttpRequest, invitation_id: UUID) -> HttpResponse:
        invitation = pending_invitation(self.organization, invitation_id)
        return self.page("orgs/invitation_revoke.html", {"invitation": invitation})

    def post(self, request: HttpRequest, invitation_id: UUID) -> HttpResponse:
        """Spec: §4.4 · D9"""
        revoke_invitation(actor=self.actor, organization=self.organization, invitation_id=invitation_id)
        messages.success(request, "The invitation is revoked. Its link no longer works.")
        return redirect("orgs:invitations", self.organization.id)
