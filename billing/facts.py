"""Pure: an event of the payment provider, reduced to the facts that decide about a plan. Spec: D92

The provider's object is read in the shapes of several API versions: the end of a period is on the items of a
subscription or, before 2025-03, on the subscription; an invoice names its subscription in `parent` or, before, itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from billing.states import SubscriptionStatus


class Kind(StrEnum):
    """The provider's kinds that are read, and our own reading of a subscription."""

    CHECKOUT_COMPLETED = "checkout.session.completed"
    SUBSCRIPTION_CREATED = "customer.subscription.created"
    SUBSCRIPTION_UPDATED = "customer.subscription.updated"
    SUBSCRIPTION_PAUSED = "customer.subscription.paused"
    SUBSCRIPTION_RESUMED = "customer.subscription.resumed"
    SUBSCRIPTION_DELETED = "customer.subscription.deleted"
    INVOICE_PAID = "invoice.paid"
    INVOICE_PAYMENT_FAILED = "invoice.payment_failed"
    RECONCILED = "reconciliation.subscription"


class UnreadableEvent(Exception):
    """An object without the members that its kind has. The text names the member and repeats no value."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A subscription as its object says. Times are seconds since the Unix epoch."""

    status: SubscriptionStatus
    # It ends by itself at `period_end`.
    is_ending: bool = False
    period_start: int | None = None
    period_end: int | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """`created`: seconds since the Unix epoch by the provider's clock. Members that a kind does not have are empty."""

    id: str
    kind: Kind
    created: int
    customer_id: str
    subscription_id: str = ""
    snapshot: Snapshot | None = None
    # Status and `is_ending` before this event, where the provider says what changed.
    previous_status: SubscriptionStatus | None = None
    previous_is_ending: bool | None = None
    invoice_id: str = ""
    checkout_session_id: str = ""
    # The organization that our own checkout sessions carry.
    organization_id: str = ""


_KINDS = {kind.value: kind for kind in Kind if kind is not Kind.RECONCILED}
_INVOICES = {Kind.INVOICE_PAID, Kind.INVOICE_PAYMENT_FAILED}
_IDENTIFIER = re.compile(r"[!-~]{1,200}")
# The first invoice was never paid, and the subscription cannot go on.
_OTHER_STATUSES = {"incomplete_expired": SubscriptionStatus.CANCELED}
_MAX_TIME = 253_402_300_799  # the last second of the year 9999
ORGANIZATION = "organization_id"  # in the metadata of what we create at the provider


def parse_event(body: Mapping[str, Any]) -> Event | None:
    """None for what decides nothing: other kinds, invoices and sessions of no subscription. Raises: UnreadableEvent."""
    kind = _KINDS.get(_text(body, "type"))
    if kind is None:
        return None
    data = _mapping(body, "data")
    found, named = _mapping(data, "object"), {"id": identifier(body), "kind": kind, "created": _time(body, "created")}
    if kind is Kind.CHECKOUT_COMPLETED:
        return _checkout(found, named)
    if kind in _INVOICES:
        return _invoice(found, named)
    return _subscription(found, named, data.get("previous_attributes"))


def read_subscription(found: Mapping[str, Any], *, read_at: int) -> Event:
    """A reading of the provider's object, as an event of `read_at`. Raises: UnreadableEvent."""
    # The same reading twice is one event.
    name = f"read_{read_at}_{identifier(found)}"
    return _subscription(found, {"id": name, "kind": Kind.RECONCILED, "created": read_at}, None)


def to_json(event: Event) -> dict[str, Any]:
    """The members that are no columns of the stored event, without empty ones."""
    columns = {"id", "kind", "created", "customer_id", "subscription_id"}
    return {name: value for name, value in asdict(event).items() if name not in columns and value not in ("", None)}


def from_json(facts: Mapping[str, Any], **columns: Any) -> Event:
    """The inverse of `to_json`."""
    rest = dict(facts)
    if snapshot := rest.pop("snapshot", None):
        rest["snapshot"] = Snapshot(**{**snapshot, "status": SubscriptionStatus(snapshot["status"])})
    if previous := rest.pop("previous_status", None):
        rest["previous_status"] = SubscriptionStatus(previous)
    return Event(**columns, **rest)


def identifier(found: Mapping[str, Any], name: str = "id") -> str:
    """The identifier in a member, which may hold the object itself instead. Raises: UnreadableEvent."""
    value = found.get(name)
    value = value.get("id") if isinstance(value, Mapping) else value
    if not isinstance(value, str) or not _IDENTIFIER.fullmatch(value):
        raise UnreadableEvent(name)
    return value


def _checkout(found: Mapping[str, Any], named: Mapping[str, Any]) -> Event | None:
    if found.get("mode") != "subscription":
        return None
    metadata = found.get("metadata")
    own = metadata.get(ORGANIZATION) if isinstance(metadata, Mapping) else None
    # A payment link takes any reference from its address; metadata are written by the holder of the secret key alone.
    is_ours = isinstance(own, str) and own == found.get("client_reference_id")
    return Event(
        **named,
        customer_id=identifier(found, "customer"),
        checkout_session_id=identifier(found),
        organization_id=str(own) if is_ours else "",
    )


def _invoice(found: Mapping[str, Any], named: Mapping[str, Any]) -> Event | None:
    parent = found.get("parent")
    details = parent.get("subscription_details") if isinstance(parent, Mapping) else None
    owner = details if isinstance(details, Mapping) and details.get("subscription") else found
    if not owner.get("subscription"):
        return None
    return Event(
        **named,
        customer_id=identifier(found, "customer"),
        subscription_id=identifier(owner, "subscription"),
        invoice_id=identifier(found),
    )


def _subscription(found: Mapping[str, Any], named: Mapping[str, Any], previous: object) -> Event:
    former = previous if isinstance(previous, Mapping) else {}
    is_deleted = named["kind"] is Kind.SUBSCRIPTION_DELETED
    status = SubscriptionStatus.CANCELED if is_deleted else _status(found)
    return Event(
        **named,
        customer_id=identifier(found, "customer"),
        subscription_id=identifier(found),
        snapshot=Snapshot(status, _is_ending(found), *_period(found)),
        previous_status=_status(former) if "status" in former else None,
        previous_is_ending=_is_ending({**found, **former}) if former else None,
    )


def _status(found: Mapping[str, Any]) -> SubscriptionStatus:
    text = _text(found, "status")
    try:
        return _OTHER_STATUSES.get(text) or SubscriptionStatus(text)
    except ValueError:
        raise UnreadableEvent("status") from None


def _is_ending(found: Mapping[str, Any]) -> bool:
    # Newer versions name the time of the end instead.
    return bool(found.get("cancel_at_period_end")) or found.get("cancel_at") is not None


def _period(found: Mapping[str, Any]) -> tuple[int | None, int | None]:
    items = found.get("items")
    listed = items.get("data") if isinstance(items, Mapping) else None
    entries = listed if isinstance(listed, list) else []
    places = [found, *(each for each in entries if isinstance(each, Mapping))]
    starts = [_time(each, "current_period_start") for each in places if each.get("current_period_start") is not None]
    ends = [_time(each, "current_period_end") for each in places if each.get("current_period_end") is not None]
    if found.get("cancel_at") is not None:
        ends = [_time(found, "cancel_at")]
    return max(starts, default=None), max(ends, default=None)


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str):
        raise UnreadableEvent(name)
    return value


def _mapping(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = found.get(name)
    if not isinstance(value, Mapping):
        raise UnreadableEvent(name)
    return value


def _time(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= _MAX_TIME:
        raise UnreadableEvent(name)
    return value
