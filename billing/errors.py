"""Pure: refusals that only billing knows."""

from __future__ import annotations

from gateway.lib.errors import Conflict, DomainError, Invalid


class SubscriptionRequired(DomainError):
    """The organization's plan does not cover this now. Spec: §7 · D6"""

    code, status = "subscription_required", 402
    message = "This needs an active subscription. An owner of the organization can renew it."


class CodeRequired(Invalid):
    """An empty redeem code. Spec: §4.4 · D94"""

    code, message = "code_required", "Enter a code."


class InvalidCode(DomainError):
    """A redeem code that nobody issued. Spec: §4.4 · D94"""

    code, message, status = "invalid_code", "This code is not valid.", 422


class PlanAlreadyActive(Conflict):
    """A redeem code that was issued once: the plan it stood for is the only one. Spec: §4.4 · D94"""

    code, message = "plan_already_active", "The plan of this code is already active."
