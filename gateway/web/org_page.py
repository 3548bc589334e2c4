"""Base of the pages of one organization: sign-in, gate and navigation frame."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.mixins import LoginRequiredMixin
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.utils.functional import cached_property

from billing.errors import SubscriptionRequired
from billing.selectors import Plan, plan_of
from billing.states import PlanState
from credentials.selectors import people_vendor_slugs, people_vendors
from gateway.web import rate
from gateway.web.admission import is_in_plan, pass_limit_and_plan, pass_role
from gateway.web.gate import Gate
from gateway.web.incident_notice import open_now, touching, with_touched_vendors
from gateway.web.navigation import NavItem, links, navigation
from gateway.web.plan_notice import plan_notice
from gateway.web.rate import RateLimited
from gateway.web.signed_in import SignedInPage
from orgs.models import Membership, Organization, User
from orgs.roles import Role
from orgs.selectors import count_of_waiting_requests, memberships


class OrgPage(SignedInPage):
    """A page below /orgs/<org_id>/. A method without a gate gets 405. Spec: D4, D5"""

    # By method; `"POST disconnect"` is the gate of the form button with `action=disconnect`.
    gates: ClassVar[Mapping[str, Gate]]
    # The page of the navigation that this one belongs to.
    nav_route: ClassVar[str]
    # The pages of one thing, and which of them this is.
    tabs: ClassVar[tuple[NavItem, ...]] = ()
    tab_route: ClassVar[str] = ""

    membership: Membership
    # All of the person, as the request began.
    memberships: Sequence[Membership]

    def dispatch(self, request: HttpRequest, *args: Any, org_id: uuid.UUID, **kwargs: Any) -> HttpResponseBase:
        if not isinstance(request.user, User):
            rate.count(request, settings.BACKSTOP)
            return self.handle_no_permission()
        gate = self._gate(request)
        if gate is None:
            rate.count(request, settings.BACKSTOP)
            return self.http_method_not_allowed(request)
        found = open_now()
        # One statement for the check, for the list of organizations in the frame and for the incidents that touch them.
        rows = memberships(request.user).select_related("user")
        self.memberships = list(with_touched_vendors(rows, found))
        # A non-member gets the same 404 whether or not the organization exists.
        membership = pass_role(request, request.user, gate, str(org_id), among=self.memberships)
        if membership is None:
            raise ImproperlyConfigured(f"a gate of {type(self).__name__} names no role")
        self.membership = membership
        self.incidents = touching(membership, found)
        try:
            pass_limit_and_plan(request, gate, membership)
        except (RateLimited, SubscriptionRequired) as refusal:
            answer = self.refused(refusal)
            for name, value in refusal.headers.items():
                answer[name] = value
            return answer
        # Past LoginRequiredMixin: sign-in is already checked above.
        return super(LoginRequiredMixin, self).dispatch(request, *args, **kwargs)

    def refused(self, refusal: RateLimited | SubscriptionRequired) -> HttpResponse:
        """The error page, inside the organization's frame for a GET without a plan. Raises: the refusal. Spec: D147"""
        if isinstance(refusal, SubscriptionRequired) and self.request.method in ("GET", "HEAD"):
            return self.page("site/plan_ended.html", status=refusal.status)
        # A subclass with a form may show the refusal above the form instead, so that typed input is kept.
        raise refusal

    def _gate(self, request: HttpRequest) -> Gate | None:
        if request.method == "POST":
            button = self.gates.get(f"POST {request.POST.get('action', '')}")
            if button is not None:
                return button
        return self.gates.get("GET" if request.method == "HEAD" else request.method or "")

    @property
    def organization(self) -> Organization:
        return self.membership.organization

    @property
    def actor(self) -> User:
        return self.membership.user

    @cached_property
    def form_needs_plan(self) -> bool:
        """Whether the page's form would be refused for want of a plan."""
        gate = self.gates.get("POST")
        return gate is not None and not is_in_plan(gate, self.organization)

    @cached_property
    def plan(self) -> Plan | None:
        """None where billing is disabled."""
        return None if settings.BILLING_MODE == "disabled" else plan_of(self.organization)

    @property
    def has_plan(self) -> bool:
        return self.plan is None or self.plan.state is PlanState.ACTIVE

    def tab_ids(self) -> tuple[object, ...]:
        """The ids of the tabs' thing, below the organization's."""
        return tuple(value for name, value in self.kwargs.items() if name != "org_id")

    @cached_property
    def people_vendors(self) -> list[str]:
        """Slugs of the vendors with any credential for people, as the request began."""
        return people_vendors(self.organization)

    @cached_property
    def requests_waiting(self) -> int:
        """Access requests that the member can decide."""
        if not self.membership.has_role(Role.ADMIN):
            return 0
        return count_of_waiting_requests(self.organization, people_vendor_slugs(self.organization))

    def frame(self) -> dict[str, Any]:
        ids = [self.organization.id, *self.tab_ids()]
        return {
            **super().frame(),
            "memberships": self.memberships,
            "tabs": links(self.tabs, self.membership, self.tab_route, ids),
            "organization": self.organization,
            "membership": self.membership,
            "nav": navigation(self.membership, self.nav_route, counts={"orgs:access-requests": self.requests_waiting}),
            "is_off_menu": not self.nav_route,
            "requests_waiting": self.requests_waiting,
            "plan_notice": plan_notice(self.membership, self.plan),
            "form_needs_plan": self.form_needs_plan,
        }

    def done(self, text: str, route: str, *args: object) -> HttpResponse:
        """Redirects to a page of the organization, which shows the text."""
        messages.success(self.request, text)
        return redirect(route, self.organization.id, *args)
