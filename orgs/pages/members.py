"""The members of an organization: the list, and the pages that change a role, remove a member, and leave."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from audit.selectors import last_calls
from credentials.selectors import people_vendors
from gateway.catalog import registry
from gateway.lib.errors import DomainError, Forbidden
from gateway.web.gate import Gate
from gateway.web.navigation import PERSON_TABS
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from gateway.web.search import search_words
from oauth_ext.selectors import clients_shown_to, connected_apps, live_access_tokens
from orgs import selectors
from orgs.default_access_preview import vendors_of_member
from orgs.errors import LastOwner
from orgs.models import Membership, Organization
from orgs.pages.other_member import OtherMemberPage, role_field
from orgs.pages.ownership import StepDownForm
from orgs.roles import Role, may_remove
from orgs.services.members import change_role, leave_organization, remove_member


class MembersPage(OrgPage):
    """GET /orgs/:orgId/members. Spec: §4.4 · D43"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = gettext_lazy("Members")
    nav_route = "orgs:members"

    def get(self, request: HttpRequest) -> HttpResponse:
        asked = search_words(request, "q")
        page = page_of(request, selectors.members(self.organization, matching=asked))
        is_admin = self.membership.has_role(Role.ADMIN)
        shown = list(page.object_list)
        # Teams and last calls are for admins, as in the API.
        calls = last_calls(self.organization.id, [str(row.user_id) for row in shown]) if is_admin else {}
        teams = selectors.teams_by_member(shown) if is_admin else {}
        context = {
            "page": page,
            "rows": [
                {
                    "membership": row,
                    "is_own": row.pk == self.membership.pk,
                    "teams": teams.get(row.user_id, []),
                    "last_call": calls.get(str(row.user_id)),
                    "may_change_role": self.membership.has_role(Role.OWNER) and row.pk != self.membership.pk,
                    "may_remove": row.pk != self.membership.pk and self._may_remove(row),
                    "may_leave": row.pk == self.membership.pk and selectors.may_end_membership(row),
                }
                for row in shown
            ],
            "asked": asked,
            "is_admin": is_admin,
        }
        return self.page("orgs/members.html", context)

    def _may_remove(self, row: Membership) -> bool:
        return may_remove(Role(self.membership.role), Role(row.role), themselves=False)


class RoleForm(forms.Form):
    role = role_field(gettext_noop("Choose admin or member."))


class MemberRolePage(OtherMemberPage[RoleForm]):
    """GET, POST /orgs/:orgId/members/:userId/role. Spec: §4.4 · D44"""

    title = gettext_lazy("Change role")
    tabs = PERSON_TABS
    tab_route = "orgs:member-role"
    form_class = RoleForm
    template = "orgs/member_role.html"

    def get(self, request: HttpRequest, *args: Any, **path: Any) -> HttpResponse:
        """An owner's own role is for other owners to change; they may step down."""
        if self.kwargs["user_id"] == self.membership.user_id:
            context = {
                "form": StepDownForm(initial={"role": Role.ADMIN.value}),
                "page_title": self.membership.user.name,
                "is_only_owner": not selectors.may_end_membership(self.membership),
            }
            return self.page("orgs/own_role.html", context)
        return super().get(request, *args, **path)

    def initial(self) -> dict[str, Any]:
        return {"role": self.target.role}

    def save(self, form: RoleForm) -> HttpResponse:
        role, user_id = Role(form.cleaned_data["role"]), self.target.user_id
        changed = change_role(actor=self.actor, organization=self.organization, user_id=user_id, role=role)
        return self.done(
            (gettext("%(name)s is now an admin.") if role is Role.ADMIN else gettext("%(name)s is now a member."))
            % {"name": changed.user.name},
            "orgs:members",
        )

    def context(self) -> dict[str, Any]:
        connected = people_vendors(self.organization)
        granted = selectors.granted_vendors(self.target, selectors.team_ids(self.target))
        as_member = vendors_of_member(granted, connected, default_all=self.organization.gives_access_by_default)
        return {
            "target": self.target,
            "connected": len(connected),
            "as_member": registry.load().names_of(as_member),
        }


@dataclass(frozen=True, slots=True)
class RemovalImpact:
    """Consequences of the end of a membership, with the pending invitations of the person, and those that end.

    `agents`: names of those whose key or secret the person was shown, which stay.
    """

    apps: int
    tokens: int
    vendors: list[str]
    teams: list[str]
    invitations: int
    ended_invitations: int
    agents: list[str]

    @property
    def is_empty(self) -> bool:
        return not (self.apps or self.tokens or self.vendors or self.teams or self.ended_invitations)


def removal_impact_of(organization: Organization, target: Membership) -> RemovalImpact:
    invitations = selectors.pending_invitations(organization).filter(created_by=target.user).count()
    return RemovalImpact(
        apps=connected_apps(organization, of=target.user).count(),
        tokens=live_access_tokens(organization, of=target.user).count(),
        vendors=registry.load().names_of(selectors.member_vendors(target)),
        teams=selectors.teams_by_member([target]).get(target.user_id, []),
        invitations=invitations,
        ended_invitations=invitations,
        agents=[client.name for client in clients_shown_to(organization, target.user)],
    )


class RemoveMemberPage(OrgPage):
    """GET, POST /orgs/:orgId/members/:userId/remove"""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = gettext_lazy("Remove member")
    nav_route = "orgs:members"

    def get(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        target = selectors.member(self.organization, str(user_id))
        if target.pk == self.membership.pk:
            return redirect("orgs:leave", self.organization.id)
        self._require_removable(target)
        context = {"target": target, "is_own": False, "impact": removal_impact_of(self.organization, target)}
        return self.page("orgs/member_remove.html", context)

    def post(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """Spec: §4.4 · D45"""
        target = selectors.member(self.organization, str(user_id))
        if target.pk == self.membership.pk:
            return redirect("orgs:leave", self.organization.id)
        self._require_removable(target)
        remove_member(actor=self.actor, organization=self.organization, user_id=user_id)
        return self.done(
            gettext("%(name)s was removed. Their access is revoked.") % {"name": target.user.name}, "orgs:members"
        )

    def _require_removable(self, target: Membership) -> None:
        if not may_remove(Role(self.membership.role), Role(target.role), themselves=False):
            raise Forbidden(gettext("Only owners can remove admins and owners."))


class LeavePage(OrgPage):
    """GET, POST /orgs/:orgId/leave. Spec: D45"""

    gates = {"GET": Gate(Role.MEMBER), "POST": Gate(Role.MEMBER)}
    title = gettext_lazy("Leave organization")
    nav_route = "orgs:members"

    def get(self, request: HttpRequest) -> HttpResponse:
        return self._confirm(None if selectors.may_end_membership(self.membership) else LastOwner(themselves=True))

    def post(self, request: HttpRequest) -> HttpResponse:
        try:
            leave_organization(actor=self.actor, organization=self.organization)
        except LastOwner as refusal:
            return self._confirm(refusal)
        messages.success(request, gettext("You left %(name)s.") % {"name": self.organization.name})
        return redirect("landing")

    def _confirm(self, refusal: DomainError | None) -> HttpResponse:
        context = {
            "target": self.membership,
            "is_own": True,
            # The invitations of a person who leaves stay.
            "impact": replace(removal_impact_of(self.organization, self.membership), ended_invitations=0),
            "refusal": refusal,
        }
        return self.page("orgs/member_remove.html", context, status=refusal.status if refusal else 200)
