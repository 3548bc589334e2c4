"""The members of an organization: the list, the page that changes a role, the page that removes somebody."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from audit.selectors import last_calls
from credentials.selectors import people_vendors
from gateway.lib.errors import DomainError, Forbidden
from gateway.web.gate import Gate
from gateway.web.org_page import OrgPage
from gateway.web.paging import page_of
from oauth_ext.selectors import connected_apps, live_access_tokens
from orgs import selectors
from orgs.access_change import vendors_of_member
from orgs.errors import CannotChangeOwnRole, LastOwner
from orgs.models import Membership
from orgs.pages.vendor_names import vendor_names
from orgs.roles import Role, may_remove
from orgs.services.members import change_role, remove_member

MAX_SEARCH_CHARACTERS = 100


class MembersPage(OrgPage):
    """GET /orgs/:orgId/members: everybody, with what the reader may do about each. Spec: §4.4 · D43"""

    gates = {"GET": Gate(Role.MEMBER)}
    title = "Members"
    nav_route = "orgs:members"

    def get(self, request: HttpRequest) -> HttpResponse:
        """One page of the list, earliest member first. Teams and last calls are for admins, as in the API."""
        asked = " ".join(request.GET.get("q", "").split())[:MAX_SEARCH_CHARACTERS]
        page = page_of(request, selectors.members(self.organization, matching=asked))
        is_admin = self.membership.has_role(Role.ADMIN)
        shown = list(page.object_list)
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
                    "may_remove": self._may_remove(row),
                }
                for row in shown
            ],
            "asked": asked,
            "is_admin": is_admin,
        }
        return self.page("orgs/members.html", context)

    def _may_remove(self, row: Membership) -> bool:
        """Whether the button leads anywhere: the only owner who looks at this is the reader."""
        is_own = row.pk == self.membership.pk
        allowed = may_remove(Role(self.membership.role), Role(row.role), themselves=is_own)
        return allowed and not (is_own and selectors.is_last_owner(row))


class MemberRolePage(OrgPage):
    """GET, POST /orgs/:orgId/members/:userId/role: admin or member, and what each means for this person."""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER)}
    title = "Change role"
    nav_route = "orgs:members"

    def get(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """The two roles, the present one chosen."""
        return self._page(self._target(user_id))

    def post(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """Change it. Spec: §4.4 · D44"""
        target, asked = self._target(user_id), request.POST.get("role", "")
        if asked not in {Role.ADMIN.value, Role.MEMBER.value}:
            return self._page(target, error="Choose admin or member.", status=422)
        changed = change_role(actor=self.actor, organization=self.organization, user_id=user_id, role=Role(asked))
        article = "an admin" if asked == Role.ADMIN.value else "a member"
        messages.success(request, f"{changed.user.name} is now {article}.")
        return redirect("orgs:members", self.organization.id)

    def _target(self, user_id: UUID) -> Membership:
        target = selectors.member(self.organization, str(user_id))
        if target.pk == self.membership.pk:
            raise CannotChangeOwnRole
        return target

    def _page(self, target: Membership, *, error: str = "", status: int = 200) -> HttpResponse:
        connected = people_vendors(self.organization)
        granted = selectors.granted_vendors(target, selectors.team_ids(target))
        as_member = vendors_of_member(granted, connected, default_all=self.organization.gives_access_by_default)
        context = {
            "target": target,
            "connected": len(connected),
            "as_member": vendor_names(as_member),
            "chosen": target.role,
            "error": error,
        }
        return self.page("orgs/member_role.html", context, status=status)


@dataclass(frozen=True, slots=True)
class Ending:
    """What a removal ends, and what it leaves behind on purpose."""

    apps: int
    tokens: int
    vendors: list[str]
    teams: list[str]
    invitations: int


class RemoveMemberPage(OrgPage):
    """GET, POST /orgs/:orgId/members/:userId/remove: what ends for them, then the removal."""

    gates = {"GET": Gate(Role.ADMIN), "POST": Gate(Role.ADMIN)}
    title = "Remove member"
    nav_route = "orgs:members"

    def get(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """The consequences in numbers."""
        target = self._target(user_id)
        refusal = LastOwner() if selectors.is_last_owner(target) else None
        return self._confirm(target, refusal)

    def post(self, request: HttpRequest, user_id: UUID) -> HttpResponse:
        """Remove. Spec: §4.4 · D45"""
        target = self._target(user_id)
        try:
            remove_member(actor=self.actor, organization=self.organization, user_id=user_id)
        except LastOwner as refusal:
            return self._confirm(target, refusal)
        if target.pk == self.membership.pk:
            messages.success(request, f"You left {self.organization.name}.")
            return redirect("landing")
        messages.success(request, f"{target.user.name} is no longer a member. Their tokens no longer work.")
        return redirect("orgs:members", self.organization.id)

    def _target(self, user_id: UUID) -> Membership:
        target = selectors.member(self.organization, str(user_id))
        is_own = target.pk == self.membership.pk
        if not may_remove(Role(self.membership.role), Role(target.role), themselves=is_own):
            raise Forbidden("Only an owner removes admins and owners.")
        return target

    def _confirm(self, target: Membership, refusal: DomainError | None) -> HttpResponse:
        context: dict[str, Any] = {
            "target": target,
            "is_own": target.pk == self.membership.pk,
            "ending": self._ending(target),
            "refusal": refusal,
        }
        return self.page("orgs/member_remove.html", context, status=refusal.status if refusal else 200)

    def _ending(self, target: Membership) -> Ending:
        organization = self.organization
        return Ending(
            apps=connected_apps(organization, of=target.user).count(),
            tokens=live_access_tokens(organization, of=target.user).count(),
            vendors=vendor_names(selectors.member_grants(target)),
            teams=selectors.teams_by_member([target]).get(target.user_id, []),
            invitations=selectors.pending_invitations(organization).filter(created_by=target.user).count(),
        )
