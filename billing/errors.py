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


class BillingUnavailable(DomainError):
    """The deployment has no payment provider. Spec: D41"""

    code, status = "billing_unavailable", 503
    message = "This service takes no payments. The people who run it decide about the plan."


# Refusals of checkout and portal. Spec: D93
class AlreadySubscribed(Conflict):
    code, message = "already_subscribed", "The organization already has a subscription."


class NoBillingAccount(Conflict):
    code = "no_billing_account"
    message = "The organization has no account at the payment provider yet. Subscribe first."


class InvalidCoupon(DomainError):
    code, message, status = "invalid_coupon", "This coupon is not valid.", 422


class BillingProviderError(DomainError):
    """The payment provider is away, slow, refuses, or answers what cannot be used."""

    code, status = "billing_provider_error", 502
    message = "The payment provider did not answer as it should. Nothing was changed; try again in a moment."
