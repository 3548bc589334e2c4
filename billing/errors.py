"""Pure: errors of billing."""

from collections.abc import Mapping

from gateway.lib.errors import Conflict, DomainError, Invalid
from gateway.lib.sentences import sentence


# Spec: §7 · D6
class SubscriptionRequired(DomainError):
    code, status = "subscription_required", 402
    message = sentence("This needs an active plan. An owner of the organization can renew it.")
    # Of the page where it can be renewed; empty where no page is known.
    portal_url = ""


# Refusals of redeem codes. Spec: §4.4 · D94
class CodeRequired(Invalid):
    code, message = "code_required", sentence("Enter a code.")


class InvalidCode(DomainError):
    """The code is none of LEGACY_CODE_SHA256."""

    code, message, status = (
        "invalid_code",
        sentence("This code isn’t valid. Compare it with the message you received it in."),
        422,
    )


class PlanAlreadyActive(Conflict):
    """A valid legacy code: it stood for the plan that every organization has."""

    code, message = "plan_already_active", sentence("The plan for this code is already active.")


class BillingUnavailable(DomainError):
    """The deployment has no payment provider. Spec: D41"""

    code, status = "billing_unavailable", 503
    message = sentence("This service takes no payments. Its operators set the plan.")


# Refusals of checkout and portal. Spec: D93
class AlreadySubscribed(Conflict):
    code, message = "already_subscribed", sentence("The organization already has a subscription.")


class NoBillingAccount(Conflict):
    code = "no_billing_account"
    message = sentence("The organization has no account at the payment provider yet. Subscribe first.")


class InvalidCoupon(DomainError):
    code, message, status = (
        "invalid_coupon",
        sentence("This coupon isn’t valid. Check it, or subscribe without it."),
        422,
    )


class BillingProviderError(DomainError):
    """The payment provider is away, slow, refuses, or answers what cannot be used."""

    code, status = "billing_provider_error", 502
    message = sentence("The payment provider didn’t respond as expected. Nothing changed. Try again in a moment.")


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

    code, message, status = (
        "overloaded",
        sentence("Too many requests are waiting for the payment provider. Try again in a moment."),
        503,
    )
    headers: Mapping[str, str] = {"Retry-After": "2"}


class ProviderDecides(Conflict):
    """A state by hand, where the payment provider's events set it. Spec: D40"""

    code, message = (
        "provider_decides",
        sentence(
            "The payment provider decides about the subscription, so a command can’t change it. Change it at the"
            " provider."
        ),
    )


# Refusals of webhooks. Spec: D90
class InvalidSignature(Invalid):
    code, message = "invalid_signature", sentence("The signature does not match this body or its timestamp.")


class InvalidEvent(Invalid):
    """The provider signed it, and this version cannot read it. The provider sends it again, for three days."""

    code, message = "invalid_event", sentence("The event cannot be read.")
