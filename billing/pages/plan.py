"""The page of an organization's plan: its state, what it covers, what was used, and the ways to the provider."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, ClassVar
from urllib.parse import urlsplit

from csp.decorators import csp_update
from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.functional import cached_property
from django.utils.translation import gettext, gettext_lazy, gettext_noop

from audit.usage import selectors as usage_selectors
from audit.usage.period import DEFAULT_RANGE, RANGES, Period
from billing import entitlements
from billing.checkout import open_portal, start_checkout
from billing.pages.leading_out import origin_of, provider_origins
from billing.pages.plan_words import plan_words
from billing.selectors import Plan, plan_of
from billing.states import OWING, PlanState
from gateway.lib import clock
from gateway.lib.errors import DomainError
from gateway.lib.text import clean_name
from gateway.web.form_errors import show_on
from gateway.web.form_page import OrgFormPage
from gateway.web.gate import ENTITLEMENT_WORDS, Gate, PlanFunction
from gateway.web.log_reads import log_read
from gateway.web.organization_slots import ShareTaken, SlotsTaken
from gateway.web.signed_in import is_by_htmx, load_whole_page
from orgs import selectors
from orgs.roles import Role

# After the checkout the page asks so often, for so long.
RENEW_EVERY_S, WAIT_S = 2, 60
GOES_ON = (
    gettext_noop("Tool calls of people, apps and agents"),
    gettext_noop("Roles, vendor access and allowed tools"),
    gettext_noop("Credentials of teams and agents"),
    gettext_noop("Removing, revoking, disconnecting and deleting"),
    gettext_noop("Recording every call, and delivering records to log destinations"),
)


class CouponForm(forms.Form):
    coupon = forms.CharField(
        label=gettext_lazy("Coupon"),
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )

    def clean_coupon(self) -> str:
        try:
            return clean_name(self.cleaned_data["coupon"], allow_empty=True)
        except ValueError as fault:
            raise forms.ValidationError(str(fault)) from fault


class PlanPage(OrgFormPage[CouponForm]):
    """GET, POST /orgs/:orgId/billing. The provider's events alone change the plan. Spec: §4.12 · D40, D93"""

    gates = {"GET": Gate(Role.OWNER), "POST": Gate(Role.OWNER, organization_limit=settings.PAYMENT_PAGES)}
    title = gettext_lazy("Billing")
    nav_route = "billing_pages:plan"
    form_class = CouponForm
    template = "billing/plan.html"
    refusal_status: ClassVar[int | None] = None

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        # The forms of the page redirect to the provider.
        page: Callable[..., HttpResponseBase] = super().dispatch
        allowed: Callable[..., HttpResponseBase] = csp_update({"form-action": list(provider_origins())})(page)
        return allowed(request, *args, **kwargs)

    def get(self, request: HttpRequest, **path: Any) -> HttpResponse:
        if not is_by_htmx(request):
            return super().get(request, **path)
        if self.plan.state is PlanState.ACTIVE:
            return load_whole_page()
        return render(request, "billing/_waiting.html", {"organization": self.organization, **self._wait()})

    def post(self, request: HttpRequest, **path: Any) -> HttpResponse:
        if request.POST.get("action") != "manage":
            return super().post(request, **path)
        try:
            return self._lead_to(open_portal(actor=self.actor, organization=self.organization))
        except DomainError as refusal:
            form = self.new_form(request.POST)
            show_on(form, refusal)
            return self.show(form, status=refusal.status)

    def save(self, form: CouponForm) -> HttpResponse:
        return self._lead_to(
            start_checkout(actor=self.actor, organization=self.organization, coupon=form.cleaned_data["coupon"])
        )

    def _lead_to(self, url: str) -> HttpResponse:
        if origin_of(url) in provider_origins():
            return redirect(url)
        # The policy of pages would stop a redirect to an address of the operators' own at the provider.
        return self.page("billing/leading_out.html", {"url": url, "host": urlsplit(url).netloc})

    @cached_property
    def plan(self) -> Plan:
        return plan_of(self.organization)

    @property
    def _is_lapsed(self) -> bool:
        return self.plan.state is PlanState.LAPSED

    def context(self) -> dict[str, Any]:
        plan, is_lapsed = self.plan, self._is_lapsed
        came_back = self.request.GET.get("checkout", "") if plan.mode == "stripe" else ""
        is_waiting = came_back == "done" and is_lapsed
        return {
            "plan": plan,
            "words": plan_words(plan),
            "is_lapsed": is_lapsed,
            "portal_url": settings.BILLING_PORTAL_URL,
            # Not while a payment is on its way.
            "may_subscribe": _may_subscribe(plan) and not is_waiting,
            "owes": plan.status in OWING,
            "may_manage": plan.mode == "stripe" and plan.has_customer,
            "is_confirmed": came_back == "done" and not is_lapsed,
            "is_waiting": is_waiting,
            "was_left": came_back == "canceled",
            **self._wait(),
            **self._functions(),
            "members": selectors.members(self.organization).count(),
            **self._calls(),
        }

    def _wait(self) -> dict[str, Any]:
        asked = self.request.GET.get("asked", "")
        times = int(asked) + 1 if asked.isascii() and asked.isdecimal() and len(asked) < 4 else 0
        return {"asked": times, "is_over": times * RENEW_EVERY_S >= WAIT_S, "renew_every_s": RENEW_EVERY_S}

    def _functions(self) -> dict[str, list[str]]:
        """Functions that stop without a plan, from the gates, and those that go on."""
        kept = {name for name in ENTITLEMENT_WORDS if self._is_lapsed and entitlements.has(self.organization, name)}
        return {
            "stops": [
                *map(gettext, PlanFunction),
                *(gettext(ENTITLEMENT_WORDS[name]) for name in ENTITLEMENT_WORDS if name not in kept),
            ],
            "goes_on": [*map(gettext, GOES_ON), *(gettext(ENTITLEMENT_WORDS[name]) for name in kept)],
        }

    def _calls(self) -> dict[str, Any]:
        """Calls of the last 30 days; nothing while other requests for logs hold all slots."""
        now = clock.now()
        try:
            with log_read(self.organization.id):
                usage = usage_selectors.daily_usage(self.organization.id, Period.parse({}, now))
        except (ShareTaken, SlotsTaken):
            return {}
        by_day = {each.day: each.total.calls for each in usage.days}
        days = [now.date() - timedelta(days=back) for back in reversed(range(RANGES[DEFAULT_RANGE]))]
        calls = [(day, by_day.get(day, 0)) for day in days]
        chart = {"days": [day.isoformat() for day in days], "calls": [count for _, count in calls]}
        return {"usage": usage, "calls_per_day": calls, "chart": chart}


def _may_subscribe(plan: Plan) -> bool:
    if plan.mode != "stripe":
        return False
    # Without a customer no subscription is behind the state: an operator set it by hand.
    return not plan.has_customer or (plan.state is PlanState.LAPSED and plan.status not in OWING)
