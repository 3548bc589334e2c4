"""What a route demands before its method runs, as data on the view: one gate per method, for pages and API alike."""

from __future__ import annotations

from dataclasses import dataclass

from billing.entitlements import Entitlement
from gateway.coordination.rules import Rule
from orgs.roles import Role


@dataclass(frozen=True, slots=True)
class Gate:
    """The demands of one method. A method without a gate is refused.

    `role` is None for routes of no organization: any signed-in person. `limit` None means the backstop that all
    routes share; `organization_limit` counts everybody of the organization together, besides. `active_plan` and
    `entitlement` answer 402.   Spec: §4, §8 · D5, D6
    """

    role: Role | None = None
    active_plan: bool = False
    limit: Rule | None = None
    organization_limit: Rule | None = None
    entitlement: Entitlement | None = None
