"""Requirements of a route as data on the view: one gate per method, for pages and API."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from billing.entitlements import Entitlement
from gateway.coordination.rules import Rule
from orgs.roles import Role


class PlanFunction(StrEnum):
    """The functions that stop without a plan, as the plan's page lists them."""

    CREDENTIALS = "Connecting vendors, replacing the organization’s credentials, and adding named keys"
    INVITATIONS = "Inviting people, and joining by a link"
    TEAMS = "Creating teams"
    USAGE = "Figures of usage and savings"
    LOGS = "Reading the request log and the admin log"
    LOG_SHIPPING = "Adding, testing and replaying destinations of log shipping"


# Entitlements in the same words. An organization may have them without a plan, as an exception.
ENTITLEMENT_WORDS: dict[Entitlement, str] = {"serviceClients": "Creating and rotating agent keys"}


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
