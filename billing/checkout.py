"""Checkout and portal sessions: an owner pays on the provider's pages and comes back to ours. Spec: §4.12 · D93

No database lock is held while the provider is asked: each question stands between two short transactions, and the
second one looks again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db import transaction

from billing.entitlements import state_of_row
from billing.errors import (
    AlreadySubscribed,
    BillingProviderError,
    InvalidCoupon,
    NoBillingAccount,
    PaymentsBusy,
    ProviderBusy,
    ProviderRefused,
)
from billing.facts import UnreadableEvent, read_subscription
from billing.mode import require_provider
from billing.models import Subscription
from billing.provider import CheckoutSession, Provider
from billing.services import subscription_for_change
from billing.states import OWING, PAID, PlanState, SubscriptionStatus
from gateway.lib import clock, secrets
from gateway.lib.errors import DomainError
from gateway.lib.sentences import sentence
from gateway.lib.shared_slots import SharedSlots, SlotResult
from orgs.locking import lock_for_change
from orgs.models import Organization, User
from orgs.roles import Role

SECONDS = 20.0  # for all requests of one checkout
_TRIES = 5
_PAUSE_S = 0.3
_LIVE = PAID | OWING
_OWES = sentence(
    "An invoice for the subscription is unpaid. Once it is paid on the payment provider’s page, the plan continues."
)
_UNCONFIRMED = sentence(
    "The payment provider already has a subscription of this organization. Its confirmation is on the way."
)
slots: SharedSlots[UUID] = SharedSlots(
    size=settings.CONCURRENT_PROVIDER_REQUESTS, of_owner=settings.CONCURRENT_PROVIDER_REQUESTS_OF_ORGANIZATION
)
pause: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class _Order:
    """One owner's wish for one organization."""

    provider: Provider
    actor: User
    organization: Organization
    discount: Mapping[str, str]

    def terms(self, customer_id: str) -> str:
        """Sessions with the same terms stand for each other."""
        return _digest(customer_id, settings.STRIPE_PRICE_ID, *sorted(self.discount.items()))

    def key(self, customer_id: str, count: int) -> str:
        """The same for owners who ask at the same time: the provider then gives both the same session."""
        return f"checkout-{_digest(self.organization.pk, self.terms(customer_id), settings.BASE_URL, count)}"


def start_checkout(*, actor: User, organization: Organization, coupon: str = "") -> str:
    """The address of the provider's page. Nothing of the plan changes until the provider's event arrives.

    Raises: BillingUnavailable, AlreadySubscribed, InvalidCoupon, PaymentsBusy, BillingProviderError, NotFound,
    Forbidden.
    """
    require_provider()
    _row_to_subscribe(actor, organization)
    with _slot(organization):
        provider = Provider(seconds=SECONDS)
        order = _Order(provider, actor, organization, _discount(provider, coupon))
        gone = ""
        for _ in range(_TRIES):
            customer_id = ""
            try:
                customer_id = _customer(order, instead_of=gone)
                url = _session_url(order, customer_id)
            except ProviderBusy:
                pause(_PAUSE_S)
                continue
            except ProviderRefused as refusal:
                if order.discount and refusal.is_about_the_discount():
                    # Used up, expired a moment ago, or not for this customer.
                    raise _invalid_coupon() from None
                if not refusal.is_missing("customer"):
                    raise
                gone = customer_id
                _forget_customer(organization, gone)
                continue
            if url:
                return url
    raise BillingProviderError


def open_portal(*, actor: User, organization: Organization) -> str:
    """The address of the provider's page.

    Raises: BillingUnavailable, NoBillingAccount, PaymentsBusy, BillingProviderError.
    """
    require_provider()
    row = Subscription.objects.filter(organization=organization, customer_id__isnull=False).first()
    if row is None or row.customer_id is None:
        raise NoBillingAccount
    with _slot(organization):
        try:
            return Provider(seconds=SECONDS).create_portal(organization_id=organization.pk, customer_id=row.customer_id)
        except ProviderRefused as refusal:
            if refusal.is_missing("customer"):
                raise NoBillingAccount from None
            raise


@contextmanager
def _slot(organization: Organization) -> Iterator[None]:
    """A slow provider holds a few threads of the process. Raises: PaymentsBusy."""
    if slots.take(organization.pk) is not SlotResult.TAKEN:
        raise PaymentsBusy
    try:
        yield
    finally:
        slots.give_back(organization.pk)


@transaction.atomic
def _row_to_subscribe(actor: User, organization: Organization) -> Subscription:
    """The row under the organization's lock. Raises: AlreadySubscribed, NotFound, Forbidden."""
    lock_for_change(organization, actor=actor, role=Role.OWNER)
    row = subscription_for_change(organization)
    # A state that an operator set by hand is no subscription.
    if row.subscription_id:
        if SubscriptionStatus(row.status) in OWING:
            raise AlreadySubscribed(_OWES)
        if state_of_row(row) is PlanState.ACTIVE:
            raise AlreadySubscribed
    return row


def _customer(order: _Order, *, instead_of: str) -> str:
    """The organization's customer, made at the first checkout."""
    row = _row_to_subscribe(order.actor, order.organization)
    if row.customer_id:
        return row.customer_id
    key = f"customer-{_digest(order.organization.pk, order.organization.name, instead_of)}"
    made = order.provider.create_customer(organization_id=order.organization.pk, name=order.organization.name, key=key)
    return _keep_customer(order, made)


@transaction.atomic
def _keep_customer(order: _Order, made: str) -> str:
    row = _row_to_subscribe(order.actor, order.organization)
    # Another owner may have been first.
    if row.customer_id is not None:
        return row.customer_id
    row.customer_id = made
    row.save()
    return made


@transaction.atomic
def _forget_customer(organization: Organization, customer_id: str) -> None:
    """The provider deleted it. Its events stay with the organization."""
    row = subscription_for_change(organization)
    if row.customer_id == customer_id:
        row.customer_id, row.checkout_session_id, row.checkout_terms = None, "", ""
        row.save()


def _session_url(order: _Order, customer_id: str) -> str:
    """Empty when another owner's checkout came between: the caller looks again. Raises: AlreadySubscribed."""
    row = _row_to_subscribe(order.actor, order.organization)
    terms = order.terms(customer_id)
    last = _last_session(order.provider, row)
    if last is not None and last.status == "open":
        if row.checkout_terms == terms:
            return last.url
        # Of two open sessions both could be paid.
        order.provider.expire_checkout(last.id)
    # After the last session: one that was completed meanwhile has a subscription now.
    _refuse_second(order.provider, customer_id)
    made = order.provider.create_checkout(
        organization_id=order.organization.pk,
        customer_id=customer_id,
        discount=order.discount,
        key=order.key(customer_id, row.checkout_count),
    )
    return made.url if _is_kept(order, made, terms, row.checkout_count) else ""


def _last_session(provider: Provider, row: Subscription) -> CheckoutSession | None:
    if not row.checkout_session_id:
        return None
    try:
        return provider.checkout(row.checkout_session_id)
    except ProviderRefused as refusal:
        if refusal.reason == "resource_missing":
            return None
        raise


def _is_kept(order: _Order, made: CheckoutSession, terms: str, count: int) -> bool:
    """Whether `made` is the organization's session now; otherwise it is closed."""
    try:
        is_kept = _keep_session(order, made, terms, count)
    except DomainError:
        # The organization is gone, or the actor is no owner any more.
        order.provider.expire_checkout(made.id)
        raise
    if not is_kept:
        order.provider.expire_checkout(made.id)
    return is_kept


@transaction.atomic
def _keep_session(order: _Order, made: CheckoutSession, terms: str, count: int) -> bool:
    row = _row_to_subscribe(order.actor, order.organization)
    if row.checkout_session_id == made.id:
        return True
    if row.checkout_count != count:
        return False
    row.checkout_session_id, row.checkout_terms, row.checkout_began_at = made.id, terms, clock.now()
    row.checkout_count += 1
    row.save()
    return True


def _refuse_second(provider: Provider, customer_id: str) -> None:
    """Raises: AlreadySubscribed, also while the event that tells us is on its way or was lost."""
    for found in provider.subscriptions(customer_id, with_ended=False).objects:
        try:
            told = read_subscription(found, read_at=1).snapshot
        except UnreadableEvent:
            raise BillingProviderError from None
        if told is not None and told.status in _LIVE:
            raise AlreadySubscribed(_OWES if told.status in OWING else _UNCONFIRMED)


def _discount(provider: Provider, coupon: str) -> Mapping[str, str]:
    """Of a promotion code, as customers know it, or of a coupon's id. Raises: InvalidCoupon."""
    if not coupon:
        return {}
    if promotion_code := provider.promotion_code(coupon):
        return {"promotion_code": promotion_code}
    if coupon_id := provider.coupon(coupon):
        return {"coupon": coupon_id}
    raise _invalid_coupon()


def _invalid_coupon() -> InvalidCoupon:
    return InvalidCoupon(fields={"coupon": [InvalidCoupon.message]})


def _digest(*parts: object) -> str:
    return secrets.sha256(repr([str(part) for part in parts])).hex()
