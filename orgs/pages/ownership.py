"""Pages of ownership: an owner makes another member owner, and an owner steps down."""

from __future__ import annotations

from typing import Any

from django import forms
from django.http import HttpResponse, QueryDict
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from gateway.web.form_page import OrgFormPage
from gateway.web.gate import Gate
from gateway.web.typed_name import TypedNameForm
from orgs import selectors
from orgs.pages.other_member import OtherMemberPage, role_field
from orgs.roles import Role
from orgs.services.ownership import step_down, transfer_ownership


class OwnershipForm(TypedNameForm):
    role = role_field(gettext_noop("Choose which role you’ll have."), tuple(reversed(Role)))


class TransferOwnershipPage(OtherMemberPage[OwnershipForm]):
    """GET, POST /orgs/:orgId/people/:userId/owner. Asks for the person's name. Spec: D154"""

    title = gettext_lazy("Make owner")
    template = "orgs/ownership.html"

    def new_form(self, data: QueryDict | None = None) -> OwnershipForm:
        return OwnershipForm(self.target.user.label, data, initial={"role": Role.OWNER.value})

    def save(self, form: OwnershipForm) -> HttpResponse:
        role = Role(form.cleaned_data["role"])
        transfer_ownership(
            actor=self.actor, organization=self.organization, user_id=self.target.user_id, step_down_to=role
        )
        yours = (
            gettext("You are still an owner.")
            if role is Role.OWNER
            else gettext("You are now an admin.")
            if role is Role.ADMIN
            else gettext("You are now a member.")
        )
        return self.done(
            gettext("%(label)s is now an owner. %(yours)s") % {"label": self.target.user.label, "yours": yours},
            "orgs:members",
        )

    def context(self) -> dict[str, Any]:
        return {"target": self.target}


class StepDownForm(forms.Form):
    role = role_field(gettext_noop("Choose admin or member."))


class StepDownPage(OrgFormPage[StepDownForm]):
    """GET, POST /orgs/:orgId/step-down. Spec: D154"""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = gettext_lazy("Step down")
    nav_route = "orgs:members"
    form_class = StepDownForm
    template = "orgs/own_role.html"
    refusal_status = None

    def initial(self) -> dict[str, Any]:
        return {"role": Role.ADMIN.value}

    def save(self, form: StepDownForm) -> HttpResponse:
        role = Role(form.cleaned_data["role"])
        step_down(actor=self.actor, organization=self.organization, to=role)
        return self.done(
            gettext("You are no longer an owner. You are now an admin.")
            if role is Role.ADMIN
            else gettext("You are no longer an owner. You are now a member."),
            "orgs:members",
        )

    def context(self) -> dict[str, Any]:
        return {"is_only_owner": not selectors.may_end_membership(self.membership)}
