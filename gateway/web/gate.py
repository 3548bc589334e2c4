"""Requirements of a route as data on the view: one gate per method, for pages and API."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext_noop

from billing.entitlements import Entitlement
from gateway.coordination.rules import Rule
from orgs.roles import Role, TokenScope


class PlanFunction(StrEnum):
    """The functions that stop without a plan, as the plan's page lists them."""

    CREDENTIALS = gettext_noop("Connecting vendors, replacing the organization’s credentials, and adding named keys")
    INVITATIONS = gettext_noop("Inviting people, and joining by a link")
    TEAMS = gettext_noop("Creating teams")
    USAGE = gettext_noop("Usage and savings figures")
    LOGS = gettext_noop("Reading the request log and the admin log")
    LOG_SHIPPING = gettext_noop("Adding, testing and replaying log destinations")


# Entitlements in the same words. An organization may have them without a plan, as an exception.
ENTITLEMENT_WORDS: dict[Entitlement, str] = {"serviceClients": gettext_noop("Creating and rotating agent keys")}


@dataclass(frozen=True, slots=True)
class Gate:
    """Requirements of one method. A method without a gate is refused. Spec: §4, §8 · D5, D6"""

    # None: any signed-in person, for routes without an organization.
    role: Role | None = None
    # `plan` and `entitlement` answer 402.
    plan: PlanFunction | None = None
    # Per person. None: the BACKSTOP that all routes share.
    limit: Rule | None = None
    # Counts all members of the organization together, besides `limit`.
    organization_limit: Rule | None = None
    entitlement: Entitlement | None = None
    # The least scope of a management token for it. None, the default: it needs a browser session. docs/decisions/0099
    token: TokenScope | None = None
