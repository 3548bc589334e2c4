"""The page on which an owner makes another member owner and steps down."""

from __future__ import annotations

from typing import Any

from django.http import HttpResponse, QueryDict

from gateway.web.typed_name import TypedNameForm
from orgs.pages.other_member import OtherMemberPage, role_field
from orgs.roles import Role
from orgs.services.ownership import transfer_ownership


class OwnershipForm(TypedNameForm):
    role = role_field("Choose what you become.")


class TransferOwnershipPage(OtherMemberPage[OwnershipForm]):
    """GET, POST /orgs/:orgId/members/:userId/owner. Asks for the person's name. Spec: D154"""

    title = "Transfer ownership"
    template = "orgs/ownership.html"

    def new_form(self, data: QueryDict | None = None) -> OwnershipForm:
        return OwnershipForm(self.target.user.label, data, initial={"role": Role.ADMIN.value})

    def save(self, form: OwnershipForm) -> HttpResponse:
        role = Role(form.cleaned_data["role"])
        transfer_ownership(
            actor=self.actor, organization=self.organization, user_id=self.target.user_id, step_down_to=role
        )
        return self.done(f"{self.target.user.label} is an owner now. You are {role.with_article}.", "orgs:members")

    def context(self) -> dict[str, Any]:
        return {"target": self.target}
