"""The page behind an invitation's link, and the POST that joins. Only the POST consumes a use."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.utils.translation import gettext, gettext_lazy
from django.views import View

from billing import entitlements
from gateway.lib import clock
from gateway.lib.errors import DomainError
from gateway.lib.translated import translated
from gateway.web import rate
from gateway.web.admission import pass_gate
from gateway.web.api_errors import render_error
from gateway.web.gate import Gate
from gateway.web.session_authentication import Unauthenticated
from orgs.errors import InvitationBeforeRemoval, InvitationEmailMismatch
from orgs.models import Invitation, InvitationState, Membership, User
from orgs.selectors import membership_row, memberships
from orgs.services.invitations import AcceptedInvitation, accept_invitation, find_invitation

_HEADINGS = {
    402: gettext_lazy("You can’t join right now"),
    403: gettext_lazy("This invitation is for someone else"),
    404: gettext_lazy("This link isn’t valid"),
    410: gettext_lazy("This invitation has ended"),
    429: gettext_lazy("Too many requests"),
}


class InvitePage(View):
    """GET, POST /invite/:token, for browsers and for scripts with a session (JSON). Spec: §4.4, §8 · D51-D56"""

    gates = {"GET": Gate(), "POST": Gate(limit=settings.INVITATION_ACCEPT)}
    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest, token: str) -> HttpResponse:
        try:
            rate.count(request, settings.BACKSTOP)
            invitation = find_invitation(token)
        except DomainError as refusal:
            return _refused_page(request, refusal)
        return _page(request, invitation)

    def post(self, request: HttpRequest, token: str) -> HttpResponse:
        is_browser = "text/html" in request.headers.get("Accept", "")
        admission = None
        try:
            user = _signed_in(request)
            admission = pass_gate(request, user, self.gates["POST"], None).admission
            accepted = _accept(user, token)
        except DomainError as refusal:
            answer = _refused_by_page(request, refusal) if is_browser else _refused_by_json(request, refusal)
        else:
            answer = _joined(accepted, is_browser)
        if admission is not None:
            rate.add_headers(answer, admission)
        return answer


def _signed_in(request: HttpRequest) -> User:
    if not isinstance(request.user, User):
        rate.count(request, settings.BACKSTOP)
        raise Unauthenticated
    return request.user


def _accept(user: User, token: str) -> AcceptedInvitation:
    """Spec: D53, D56"""
    invitation = find_invitation(token)
    # New members need an active plan; a person who is a member already needs none.
    if membership_row(user.id, invitation.organization_id) is None:
        entitlements.require_active(invitation.organization)
    return accept_invitation(user=user, token=token)


def _joined(accepted: AcceptedInvitation, is_browser: bool) -> HttpResponse:
    organization = accepted.membership.organization
    if is_browser:
        answer = redirect("proxy_pages:home", organization.id)
        answer.status_code = 303
        return answer
    return JsonResponse(
        {
            "organization": {"id": str(organization.id), "name": organization.name},
            "role": accepted.membership.role,
            "alreadyMember": accepted.already_member,
        }
    )


def _refused_by_json(request: HttpRequest, refusal: DomainError) -> HttpResponse:
    body, headers = render_error(request, refusal)
    return JsonResponse(body, status=refusal.status, headers=headers)


def _refused_by_page(request: HttpRequest, refusal: DomainError) -> HttpResponse:
    if isinstance(refusal, Unauthenticated):
        return redirect(_signin_url(request))
    return _refused_page(request, refusal)


def _refused_page(request: HttpRequest, refusal: DomainError) -> HttpResponse:
    heading = _HEADINGS.get(refusal.status, gettext("That didn’t work"))
    if isinstance(refusal, InvitationBeforeRemoval):
        heading = gettext("This invitation is no longer for you")
    is_for_another = isinstance(refusal, InvitationEmailMismatch)
    context = {"refusal": translated(refusal.message), "page_title": heading, "is_for_another": is_for_another}
    _, headers = render_error(request, refusal)
    answer = _render(request, context, refusal.status)
    for name, value in headers.items():
        answer[name] = value
    return answer


def _page(request: HttpRequest, invitation: Invitation) -> HttpResponse:
    state = invitation.state(clock.now())
    joined: Membership | None = None
    is_for_another = False
    if isinstance(request.user, User):
        joined = membership_row(request.user.id, invitation.organization_id)
        is_for_another = bool(invitation.email) and not request.user.owns_email(invitation.email)
    context = {
        "page_title": _title(invitation, state, joined),
        "inviting": invitation.organization,
        "invitation": invitation,
        "is_for_another": is_for_another,
        "is_open": state is InvitationState.PENDING,
        "is_expired": state is InvitationState.EXPIRED,
        "joined": joined,
        "signin_url": _signin_url(request),
    }
    is_over = state is not InvitationState.PENDING and joined is None
    return _render(request, context, 410 if is_over else 200)


def _title(invitation: Invitation, state: InvitationState, joined: Membership | None) -> str:
    words = {"name": invitation.organization.name}
    if joined is not None:
        return gettext("You’re in %(name)s") % words
    if state is InvitationState.PENDING:
        return gettext("Join %(name)s") % words
    return gettext("This invitation has expired") if state is InvitationState.EXPIRED else gettext("Already used")


def _render(request: HttpRequest, context: dict[str, Any], status: int) -> HttpResponse:
    if isinstance(request.user, User):
        context["memberships"] = memberships(request.user)
    return render(request, "orgs/invite.html", context, status=status)


def _signin_url(request: HttpRequest) -> str:
    return f"{reverse('signin')}?{urlencode({'next': request.path})}"
