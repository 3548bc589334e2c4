"""The state of each vendor that an app asks for, by the same rules as a call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import NamedTuple

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext, gettext_lazy

from credentials.resolve import CredentialRef, resolve
from credentials.selectors import refs_by_vendor
from gateway.catalog import registry
from gateway.catalog.vendor import CredentialField, Vendor
from gateway.lib.sentences import sentence
from oauth_ext import scopes
from orgs import access_rules
from orgs.models import AccessRequest, Membership
from orgs.roles import Role
from orgs.selectors import granted_vendors, people_who_may, requests_of, team_ids
from proxy.control_plane.health.selectors import down_among
from proxy.control_plane.vendor_sign_in import sign_in_levels


class State(StrEnum):
    CONNECTED = sentence("Connected")
    NEEDS_CREDENTIALS = sentence("Needs credentials")
    NO_ACCESS = sentence("No access")


class ShownField(NamedTuple):
    """A field of a vendor's credentials in a form: a secret is never filled in again."""

    field: CredentialField
    value: str
    errors: list[str]


@dataclass(frozen=True, slots=True)
class VendorState:
    vendor: Vendor
    state: State
    # It does not answer at the moment; what the state says holds all the same.
    is_down: bool = False
    # The person may store the credentials on this page.
    may_connect: bool = False
    # The levels at which the person may sign in to the vendor from this page.
    sign_ins: tuple[str, ...] = ()
    # The person's request for access, if there is one.
    asked: AccessRequest | None = None
    typed: dict[str, str] = field(default_factory=dict)
    errors: dict[str, list[str]] = field(default_factory=dict)

    @property
    def shown_fields(self) -> list[ShownField]:
        return [
            ShownField(each, self.typed.get(each.name, each.default), self.errors.get(each.name, []))
            for each in self.vendor.fields
        ]

    @property
    def works(self) -> bool:
        return self.state is State.CONNECTED

    @property
    def may_ask(self) -> bool:
        return self.state is State.NO_ACCESS and (self.asked is None or self.asked.state != AccessRequest.State.WAITING)


def vendor_states(membership: Membership, asked: Sequence[str]) -> list[VendorState]:
    """Returns the vendors that the scopes name, or every connected one for `mcp:all`, sorted by name."""
    organization = membership.organization
    refs = refs_by_vendor(organization.id)
    teams = team_ids(membership)
    granted = granted_vendors(membership, teams)
    may_edit = membership.has_role(Role.ADMIN)
    asked_for = {row.vendor: row for row in requests_of(membership)}
    found = []
    for vendor in registry.load().all():
        of_vendor = refs.get(vendor.slug, ())
        named = scopes.for_vendor(vendor.slug) in asked
        if not named and not (of_vendor and not scopes.EVERYTHING.isdisjoint(asked)):
            continue
        if not access_rules.person_may_use_vendor(
            Role(membership.role), granted, vendor.slug, default_access_all=organization.gives_access_by_default
        ):
            state = State.NO_ACCESS
        elif _lacks_credentials(resolve(of_vendor, service_client_id=None, team_ids=teams, user_id=membership.user_id)):
            state = State.NEEDS_CREDENTIALS
        else:
            state = State.CONNECTED
        needs = state is State.NEEDS_CREDENTIALS
        found.append(
            VendorState(
                vendor,
                state,
                may_connect=may_edit and needs and vendor.takes_key and not vendor.sign_in_levels,
                sign_ins=sign_in_levels(membership, vendor) if needs else (),
                asked=asked_for.get(vendor.slug),
            )
        )
    down = down_among(each.vendor.slug for each in found)
    return [replace(each, is_down=each.vendor.slug in down) for each in found]


def _lacks_credentials(found: CredentialRef | None) -> bool:
    return found is None or found.needs_sign_in


def missing(states: Sequence[VendorState]) -> list[str]:
    """Returns phrases such as "credentials for Acme"; empty when every vendor works."""
    if not states:
        return [gettext("a connected vendor")]
    phrases = {
        State.NEEDS_CREDENTIALS: gettext_lazy("credentials for %(vendors)s"),
        State.NO_ACCESS: gettext_lazy("access to %(vendors)s"),
    }
    names = {state: [each.vendor.name for each in states if each.state is state] for state in phrases}
    return [str(phrases[state]) % {"vendors": ", ".join(found)} for state, found in names.items() if found]


def who_can_help(membership: Membership) -> Sequence[str]:
    """Returns names of admins to ask; empty for an admin."""
    return [] if membership.has_role(Role.ADMIN) else people_who_may(membership.organization, Role.ADMIN)


def message_for_admins(membership: Membership, states: Sequence[VendorState]) -> str:
    """Returns a message for admins that asks for the missing steps; empty when none is missing. Spec: ux.md 4"""
    organization = membership.organization
    without_credentials = [each.vendor.name for each in states if each.state is State.NEEDS_CREDENTIALS]
    closed = [each.vendor.name for each in states if each.state is State.NO_ACCESS]
    wanted = {
        "credentials:catalog": (
            gettext_lazy("Could you connect %(vendors)s in %(organization)s?"),
            without_credentials if states else [gettext("a vendor")],
        ),
        "orgs:server-access": (gettext_lazy("Could you give me access to %(vendors)s in %(organization)s?"), closed),
    }
    return "\n".join(
        str(text) % {"vendors": ", ".join(names), "organization": organization.name}
        + f"\n{settings.BASE_URL}{reverse(page, args=[organization.id])}"
        for page, (text, names) in wanted.items()
        if names
    )
