"""Pure: errors of billing."""

from collections.abc import Mapping

from gateway.lib.errors import Conflict, DomainError, Invalid


# Spec: §7 · D6
class SubscriptionRequired(DomainError):
    code, status = "subscription_required", 402
    message = "This needs an active plan. An owner of the organization can renew it."
    # Of the page where it can be renewed; empty where no page is known.
    portal_url = ""


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
    message = "This service takes no payments. Its operators set the plan."


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


class ProviderRefused(BillingProviderError):
    """The provider understood the request and refused it; `reason` and `param` are its words for why and which."""

    def __init__(self, *, reason: str, param: str) -> None:
        super().__init__()
        self.reason, self.param = reason, param

    def is_missing(self, param: str) -> bool:
        return self.reason == "resource_missing" and self.param == param

    def is_about_the_discount(self) -> bool:
        return self.param.startswith("discounts") or self.reason.startswith(("coupon", "promotion_code"))


class ProviderBusy(BillingProviderError):
    """Another request with the same idempotency key is under way."""


class PaymentsBusy(DomainError):
    """The slots for requests to the provider are taken."""

    code, message, status = "overloaded", "Too many requests wait for the payment provider. Try again in a moment.", 503
    headers: Mapping[str, str] = {"Retry-After": "2"}


class ProviderDecides(Conflict):
    """A state by hand, where the payment provider's events set it. Spec: D40"""

    code, message = "provider_decides", "The payment provider's events set the subscription, and no command does."


# Refusals of webhooks. Spec: D90
class InvalidSignature(Invalid):
    code, message = "invalid_signature", "The signature does not fit this body at this time."


class InvalidEvent(Invalid):
    """The provider signed it, and this version cannot read it. The provider sends it again, for three days."""

    code, message = "invalid_event", "The event cannot be read."
