"""Pure: errors of billing."""

from gateway.lib.errors import Conflict, DomainError, Invalid


# Spec: §7 · D6
class SubscriptionRequired(DomainError):
    code, status = "subscription_required", 402
    message = "This needs an active subscription. An owner of the organization can renew it."


# Refusals of redeem codes. Spec: §4.4 · D94
class CodeRequired(Invalid):
    code, message = "code_required", "Enter a code."


class InvalidCode(DomainError):
    """The code is none of LEGACY_CODE_SHA256."""

    code, message, status = "invalid_code", "This code is not valid.", 422


class PlanAlreadyActive(Conflict):
    """A valid legacy code: it stood for the plan that every organization has."""

    code, message = "plan_already_active", "The plan of this code is already active."
