"""Requirements of a route as data on the view: one gate per method, for pages and API."""

from __future__ import annotations

from dataclasses import dataclass

from billing.entitlements import Entitlement
from gateway.coordination.rules import Rule
from orgs.roles import Role


@dataclass(frozen=True, slots=True)
class Gate:
    """Requirements of one method. A method without a gate is refused. Spec: §4, §8 · D5, D6"""

    # None: any signed-in person, for routes without an organization.
    role: Role | None = None
    # `active_plan` and `entitlement` answer 402.
    active_plan: bool = False
    # Per person. None: the BACKSTOP that all routes share.
    limit: Rule | None = None
    # Counts all members of the organization together, besides `limit`.
    organization_limit: Rule | None = None
    entitlement: Entitlement | None = None
