"""The button that lets a refused call through, for the person who looks at the explanation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from billing import entitlements
from gateway.catalog.vendor import Vendor
from orgs.access_rules import ToolLimit
from orgs.models import Membership
from orgs.principal import Principal
from orgs.roles import Role
from orgs.selectors import people_who_may
from proxy.calls.decide import CallStep
from proxy.control_plane.explanation import Explanation, Step


@dataclass(frozen=True, slots=True)
class Fix:
    """A link, or with `fields` a form that is posted. Without `url` the viewer may not: `who_can` do it instead."""

    label: str
    url: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)
    who_can: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Refusal:
    viewer: Membership
    principal: Principal
    vendor: Vendor
    step: Step

    @property
    def is_own(self) -> bool:
        return self.principal.user_id == self.viewer.user_id

    def page(self, route: str, *ids: object) -> str:
        return reverse(route, args=[self.viewer.organization_id, *ids])

    def for_role(self, role: Role, fix: Fix) -> Fix:
        """The fix if the viewer has the role, else the names of those who have it."""
        if self.viewer.has_role(role):
            return fix
        return Fix(fix.label, who_can=tuple(people_who_may(self.viewer.organization, role)))


def fix_of(explanation: Explanation, viewer: Membership) -> Fix | None:
    """None where nothing is refused, or where only time or an operator helps."""
    step, principal, vendor = explanation.failing, explanation.principal, explanation.vendor
    if step is None or principal is None or vendor is None:
        return None
    fix = _FIXES.get(CallStep(step.name))
    return fix(_Refusal(viewer, principal, vendor, step)) if fix else None


def _give_access(refusal: _Refusal) -> Fix:
    principal, slug = refusal.principal, refusal.vendor.slug
    label = gettext("Give %(who)s access to %(vendor)s") % {"who": principal.label, "vendor": refusal.vendor.name}
    if refusal.is_own and not refusal.viewer.has_role(Role.ADMIN):
        return Fix(
            gettext("Ask for access to %(vendor)s") % {"vendor": refusal.vendor.name},
            refusal.page("orgs:access-requests"),
        )
    if principal.user_id is not None:
        fix = Fix(label, refusal.page("orgs:person-access", principal.user_id), {"give": slug})
    else:
        # The page of the vendor shows the agent in a list with the button that takes the access back.
        fields = {"kind": "agent", "key": str(principal.client_pk), "give": "1"}
        fix = Fix(label, refusal.page("proxy_pages:vendor-access", slug), fields)
    return refusal.for_role(Role.ADMIN, fix)


def _add_key(refusal: _Refusal) -> Fix:
    # Credentials can be stored only while the plan is active.
    if not entitlements.is_active(refusal.viewer.organization):
        return refusal.for_role(Role.OWNER, Fix(gettext("Renew the plan"), refusal.page("billing_pages:plan")))
    url = refusal.page("credentials:connection", refusal.vendor.slug)
    return refusal.for_role(Role.ADMIN, Fix(gettext("Add a key for %(vendor)s") % {"vendor": refusal.vendor.name}, url))


def _allow_tool(refusal: _Refusal) -> Fix:
    principal, slug = refusal.principal, refusal.vendor.slug
    if refusal.step.kind is not None:
        return refusal.for_role(Role.OWNER, _allow_item(refusal))
    match refusal.step.limit:
        case ToolLimit.OWN:
            url = refusal.page("proxy_pages:client-tools", principal.client_id, slug)
            fix = Fix(gettext("Allow this tool for %(who)s") % {"who": principal.label}, url)
        case ToolLimit.READ_ONLY:
            url = refusal.page("oauth_pages:service-client", principal.client_id)
            fix = Fix(gettext("Let %(who)s call all tools") % {"who": principal.label}, url)
        case _:
            query = urlencode({"role": principal.role.value})
            url = f"{refusal.page('proxy_pages:tool-access', slug)}?{query}"
            fix = Fix(str(_FOR_ROLE[principal.role]), url)
    return refusal.for_role(Role.OWNER, fix)


def _allow_item(refusal: _Refusal) -> Fix:
    label = gettext("Choose resources and prompts of %(vendor)s") % {"vendor": refusal.vendor.name}
    if refusal.step.limit is ToolLimit.OWN:
        principal = refusal.principal
        return Fix(label, refusal.page("proxy_pages:client-items", principal.client_id, refusal.vendor.slug))
    query = urlencode({"role": refusal.principal.role.value})
    return Fix(label, f"{refusal.page('proxy_pages:vendor-items', refusal.vendor.slug)}?{query}")


def _see_vendor(refusal: _Refusal) -> Fix:
    return Fix(
        gettext("See the status of %(vendor)s") % {"vendor": refusal.vendor.name},
        refusal.page("proxy_pages:vendor", refusal.vendor.slug),
    )


_FOR_ROLE = {
    Role.MEMBER: gettext_lazy("Allow this tool for members"),
    Role.ADMIN: gettext_lazy("Allow this tool for admins"),
    Role.OWNER: gettext_lazy("Allow this tool for owners"),
}
_FIXES: Mapping[CallStep, Callable[[_Refusal], Fix]] = {
    CallStep.SERVER_ACCESS: _give_access,
    CallStep.CREDENTIAL: _add_key,
    CallStep.ALLOWLIST: _allow_tool,
    CallStep.VENDOR: _see_vendor,
}
