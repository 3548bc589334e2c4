"""The page on which an owner makes another member owner and steps down."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from gateway.web.typed_name import name_refusal
from orgs.errors import DeactivatedMember
from orgs.models import Membership
from orgs.pages.other_member import OtherMemberPage
from orgs.roles import Role
from orgs.services.ownership import transfer_ownership

STEPS = (Role.ADMIN.value, Role.MEMBER.value)


class TransferOwnershipPage(OtherMemberPage):
    """GET, POST /orgs/:orgId/members/:userId/owner. Asks for the person's name. Spec: D154"""

    title = "Transfer ownership"

    def get(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        return self._confirm(self.target(user_id))

    def post(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        target, asked = self.target(user_id), request.POST.get("role", "")
        error = name_refusal(request, target.user.label)
        if not error and asked not in STEPS:
            error = "Choose what you become."
        if error:
            return self._confirm(target, error=error, status=422)
        try:
            transfer_ownership(
                actor=self.actor, organization=self.organization, user_id=user_id, step_down_to=Role(asked)
            )
        except DeactivatedMember as refusal:
            return self._confirm(target, error=refusal.message, status=refusal.status)
        messages.success(request, f"{target.user.label} is an owner now. You are {Role(asked).with_article}.")
        return redirect("orgs:members", self.organization.id)

    def _confirm(self, target: Membership, *, error: str = "", status: int = 200) -> HttpResponse:
        asked = self.request.POST.get("role", "")
        context = {"target": target, "error": error, "chosen": asked if asked in STEPS else STEPS[0]}
        return self.page("orgs/ownership.html", context, status=status)
