"""Pending invitations: the list, the form that makes one, the page that revokes one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy

from billing.errors import SubscriptionRequired
from gateway.lib import ids
from gateway.lib.errors import Conflict
from gateway.lib.translated import translated
from gateway.mail.selectors import newest_mails_about
from gateway.web import rate
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate, PlanFunction
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from orgs.models import Invitation
from orgs.pages.invitation_window import window_facts
from orgs.roles import Role
from orgs.selectors import pending_invitation, pending_invitations
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation, revoke_invitation
from orgs.services.invited_people import send_again
from orgs.services.mail_domains import approve_join_request, decline_join_request, waiting_join_requests

JOIN_REQUESTS_SHOWN = 50


class InvitationForm(forms.Form):
    """Spec: D48, D49"""

    email = forms.EmailField(
        label=gettext_lazy("Email address"),
        required=False,
        max_length=254,
        help_text=gettext_lazy(
            "Only the person who signs in with this address can use the link. You send the link yourself."
        ),
        widget=forms.EmailInput(attrs={"autocomplete": "off"}),
    )
    max_uses = forms.IntegerField(
        label=gettext_lazy("Maximum uses"),
        min_value=1,
        max_value=settings.INVITATION_MAX_USES,
        initial=1,
    )
    expires_in_days = forms.IntegerField(
        label=gettext_lazy("Valid for (days)"),
        min_value=1,
        max_value=settings.INVITATION_MAX_DAYS,
        initial=settings.INVITATION_DEFAULT_DAYS,
    )


class InvitationsPage(OrgFormPage[InvitationForm]):
    """GET, POST /orgs/:orgId/invitations. Same gate and rate limit as the API. Spec: §4.4 · D49-D51"""

    gates = {
        "GET": Gate(Role.ADMIN),
        "POST": Gate(Role.ADMIN, plan=PlanFunction.INVITATIONS, limit=settings.INVITATION_CREATE),
        "POST link": Gate(Role.ADMIN),
        "POST approve-join": Gate(Role.ADMIN, plan=PlanFunction.INVITATIONS),
        "POST decline-join": Gate(Role.ADMIN),
        "POST send": Gate(Role.ADMIN, plan=PlanFunction.INVITATIONS, limit=settings.INVITATION_CREATE),
    }
    title = gettext_lazy("Invitations")
    nav_route = "orgs:invitations"
    form_class = InvitationForm
    template = "orgs/invitations.html"
    already_sent = gettext_lazy("That form was already sent. Its invitation is in the list.")
    shown_refusals = (rate.RateLimited, SubscriptionRequired)

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        # Lists show no links: an admin asks for each by a button.
        if request.POST.get("action") == "link":
            key = ids.known_id(request.POST.get("invitation", ""))
            return self._show_link(pending_invitation(self.organization, key))
        if request.POST.get("action") == "send":
            return self._send(ids.known_id(request.POST.get("invitation", "")))
        if request.POST.get("action") in ("approve-join", "decline-join"):
            return self._decide(request.POST["action"], ids.known_id(request.POST.get("request", "")))
        return super().post(request, **path)

    def save(self, form: InvitationForm) -> HttpResponse:
        made = create_invitation(actor=self.actor, organization=self.organization, **form.cleaned_data)
        return self._show_link(made, status=201)

    def _decide(self, action: str, request_id: UUID) -> HttpResponse:
        of: dict[str, Any] = {"actor": self.actor, "organization": self.organization}
        try:
            if action == "approve-join":
                label = approve_join_request(**of, request_id=request_id).user.label
                messages.success(self.request, gettext("%(person)s is now a member.") % {"person": label})
            else:
                decline_join_request(**of, request_id=request_id)
                messages.success(self.request, gettext("The request was declined."))
        except Conflict as refusal:
            messages.error(self.request, translated(refusal.message))
        return redirect("orgs:invitations", self.organization.id)

    def _send(self, invitation_id: UUID) -> HttpResponse:
        try:
            sent = send_again(actor=self.actor, organization=self.organization, invitation_id=invitation_id)
        except Conflict as refusal:
            messages.error(self.request, translated(refusal.message))
        else:
            messages.success(self.request, gettext("The message to %(email)s is on its way.") % {"email": sent.email})
        return redirect("orgs:invitations", self.organization.id)

    def _show_link(self, invitation: Invitation, *, status: int = 200) -> HttpResponse:
        token = token_of(invitation)
        link = None if token is None else f"{settings.BASE_URL}/invite/{token}"
        return self.show(self.new_form(), link_of=invitation, link=link, status=status)

    def context(self) -> dict[str, Any]:
        page = page_of(self.request, pending_invitations(self.organization).select_related("created_by"))
        return {
            "page": page,
            "mails": newest_mails_about(self.organization.id, [row.pk for row in page]),
            "delivery": settings.MAIL_DELIVERY,
            "join_requests": waiting_join_requests(self.organization)[:JOIN_REQUESTS_SHOWN],
            **window_facts(self.request, needs_plan=self.form_needs_plan),
        }


class RevokeInvitationPage(OrgPage):
    """GET, POST /orgs/:orgId/invitations/:id/revoke. Needs no active plan."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = gettext_lazy("Revoke invitation")
    nav_route = "orgs:invitations"

    def get(self, request: HttpRequest, invitation_id: UUID) -> HttpResponse:
        invitation = pending_invitation(self.organization, invitation_id)
        return self.page("orgs/invitation_revoke.html", {"invitation": invitation})

    def post(self, request: HttpRequest, invitation_id: UUID) -> HttpResponse:
        """Spec: §4.4 · D9"""
        revoke_invitation(actor=self.actor, organization=self.organization, invitation_id=invitation_id)
        return self.done(gettext("The invitation was revoked. Its link no longer works."), "orgs:invitations")
