"""Pending invitations: the list, the form that makes one, the page that revokes one."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy

from billing.errors import SubscriptionRequired
from gateway.coordination import backend
from gateway.lib import ids
from gateway.web import rate
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate, PlanFunction
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from orgs.models import Invitation
from orgs.roles import Role
from orgs.selectors import pending_invitation, pending_invitations
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation, revoke_invitation


class InvitationForm(forms.Form):
    """Spec: D48, D49"""

    email = forms.EmailField(
        label=gettext_lazy("Email address"),
        required=False,
        max_length=254,
        help_text=gettext_lazy(
            "Only the person who signs in with this address can use the link. We don’t send an email."
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
        return super().post(request, **path)

    def save(self, form: InvitationForm) -> HttpResponse:
        made = create_invitation(actor=self.actor, organization=self.organization, **form.cleaned_data)
        return self._show_link(made, status=201)

    def _show_link(self, invitation: Invitation, *, status: int = 200) -> HttpResponse:
        token = token_of(invitation)
        link = None if token is None else f"{settings.BASE_URL}/invite/{token}"
        return self.show(self.new_form(), link_of=invitation, link=link, status=status)

    def context(self) -> dict[str, Any]:
        window = backend.current().peek(settings.INVITATION_CREATE, rate.key_of(self.request))
        return {
            "page": page_of(self.request, pending_invitations(self.organization).select_related("created_by")),
            "window": window,
            "next_in_minutes": -(-window.retry_after_s // 60),
            "is_closed": self.form_needs_plan or not window.allowed,
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
