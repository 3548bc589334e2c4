"""The payment provider's API in our words. Every answer is checked before it is used."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import UUID

import structlog
from django.conf import settings

from billing.errors import BillingProviderError, ProviderRefused
from billing.facts import ORGANIZATION, UnreadableEvent, identifier
from billing.links import plan_url
from billing.mode import is_live
from gateway.lib import clock

log = structlog.get_logger(__name__)
# Of a list; no customer has so many subscriptions or open sessions.
_PAGE, _MAX_PAGES = 100, 10
_MAX_URL = 4096
MAX_SKEW_S = 300  # of the provider's clock


@dataclass(frozen=True, slots=True)
class CheckoutSession:
    """`status`: open, complete or expired; `url` is the page to pay on, empty unless it is open."""

    id: str
    status: str
    url: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The provider's objects, and its clock in seconds since the Unix epoch."""

    objects: list[Mapping[str, Any]]
    read_at: int


class Provider:
    """All requests of one piece of work, which has `seconds` for all of them. `retries` is for reads."""

    def __init__(self, *, seconds: float, retries: int = 0) -> None:
        # Without the mode the library is not loaded: it takes 25 MB and half a second.
        from billing.stripe_client import Client

        ends_s = time.monotonic() + seconds
        self._client = Client(lambda: ends_s - time.monotonic(), retries_of_reads=retries)

    def create_customer(self, *, organization_id: UUID, name: str, key: str) -> str:
        """The customer's id."""
        metadata = {ORGANIZATION: str(organization_id)}
        return _id(self._post("/v1/customers", key=key, name=name, metadata=metadata))

    def create_checkout(
        self, *, organization_id: UUID, customer_id: str, discount: Mapping[str, str], key: str
    ) -> CheckoutSession:
        metadata = {ORGANIZATION: str(organization_id)}
        made = self._post(
            "/v1/checkout/sessions",
            key=key,
            mode="subscription",
            customer=customer_id,
            line_items=[{"price": settings.STRIPE_PRICE_ID, "quantity": 1}],
            client_reference_id=str(organization_id),
            metadata=metadata,
            subscription_data={"metadata": metadata},
            success_url=plan_url(organization_id, checkout="done"),
            cancel_url=plan_url(organization_id, checkout="canceled"),
            **({"discounts": [dict(discount)]} if discount else {}),
        )
        session = _session(made)
        if not session.url:
            raise _garbage("checkout session")
        return session

    def checkout(self, session_id: str) -> CheckoutSession:
        return _session(self._get(f"/v1/checkout/sessions/{_part(session_id)}"))

    def expire_checkout(self, session_id: str) -> None:
        """The session is not open afterwards, and may have been completed before. Raises: BillingProviderError."""
        try:
            self._post(f"/v1/checkout/sessions/{_part(session_id)}/expire")
        except ProviderRefused as refusal:
            log.info("billing.checkout_not_open", reason=refusal.reason)

    def open_checkouts(self, customer_id: str) -> list[str]:
        """Ids of the sessions that can still be paid."""
        found = self._list("/v1/checkout/sessions", customer=customer_id, status="open")
        return [_id(each) for each in found.objects]

    def create_portal(self, *, organization_id: UUID, customer_id: str) -> str:
        """The address of the page."""
        made = self._post("/v1/billing_portal/sessions", customer=customer_id, return_url=plan_url(organization_id))
        return _url(made)

    def subscriptions(self, customer_id: str, *, with_ended: bool) -> Listing:
        return self._list("/v1/subscriptions", customer=customer_id, **({"status": "all"} if with_ended else {}))

    def cancel_subscription(self, subscription_id: str) -> None:
        self._client.ask("delete", f"/v1/subscriptions/{_part(subscription_id)}", {})

    def promotion_code(self, code: str) -> str | None:
        """The id of the active promotion code that customers type as `code`."""
        found = self._list("/v1/promotion_codes", code=code, active="true", limit=1)
        return _id(found.objects[0]) if found.objects else None

    def coupon(self, coupon_id: str) -> str | None:
        """The id, if there is such a coupon and it can be redeemed."""
        # `.` and `..` in a path are no names.
        if not coupon_id.strip("."):
            return None
        try:
            found = self._get(f"/v1/coupons/{_part(coupon_id)}")
        except ProviderRefused as refusal:
            if refusal.reason == "resource_missing":
                return None
            raise
        return coupon_id if found.get("id") == coupon_id and found.get("valid") is True else None

    def _list(self, path: str, **params: Any) -> Listing:
        """All pages. The time is that of the first one: later ones are newer."""
        objects: list[Mapping[str, Any]] = []
        read_at: int | None = None
        for _ in range(_MAX_PAGES):
            page, date = self._client.ask("get", path, {"limit": _PAGE, **params})
            read_at = read_at or _seconds(date)
            objects += _rows(page)
            if page.get("has_more") is not True or params.get("limit"):
                return Listing(objects, read_at)
            params["starting_after"] = _id(objects[-1]) if objects else ""
        raise _garbage("list without end")

    def _get(self, path: str) -> Mapping[str, Any]:
        return self._client.ask("get", path, {})[0]

    def _post(self, path: str, *, key: str = "", **params: Any) -> Mapping[str, Any]:
        return self._client.ask("post", path, {**params, **({"idempotency_key": key} if key else {})})[0]


def _garbage(what: str) -> BillingProviderError:
    log.warning("billing.provider_unreadable", what=what)
    return BillingProviderError()


def _id(found: Mapping[str, Any]) -> str:
    try:
        return identifier(found)
    except UnreadableEvent:
        raise _garbage("id") from None


def _session(found: Mapping[str, Any]) -> CheckoutSession:
    status = found.get("status")
    if status not in ("open", "complete", "expired"):
        raise _garbage("status of a checkout session")
    return CheckoutSession(_id(found), status, _url(found) if status == "open" else "")


def _url(found: Mapping[str, Any]) -> str:
    """A browser is sent there. Raises: BillingProviderError."""
    url = found.get("url")
    schemes = ("https", "http") if settings.STRIPE_API_IS_PRIVATE else ("https",)
    if not isinstance(url, str) or len(url) > _MAX_URL or not url.isascii() or not url.isprintable() or " " in url:
        raise _garbage("url")
    try:
        parts = urlsplit(url)
    except ValueError:
        raise _garbage("url") from None
    # A name before the host, or a backslash, would show people another host than the one they are sent to.
    if parts.scheme not in schemes or not parts.hostname or parts.username is not None or "\\" in url:
        raise _garbage("url")
    return url


def _rows(page: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    rows = page.get("data")
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise _garbage("list")
    return iter(rows)


def _seconds(date: str) -> int:
    """The provider's clock in seconds since the Unix epoch; ours where the Date cannot be used."""
    now = clock.now()
    try:
        told = parsedate_to_datetime(date).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return int(now.timestamp())
    # In test mode the provider's clock may be set to any time.
    is_usable = not is_live() or abs((told - now).total_seconds()) <= MAX_SKEW_S
    return int((told if is_usable else now).timestamp())


def _part(identifier: str) -> str:
    """One part of a path."""
    return quote(identifier, safe="")
