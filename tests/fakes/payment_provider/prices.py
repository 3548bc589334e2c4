"""Amounts and periods: what a discount takes off and when a period ends."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime, timedelta

from tests.fakes.payment_provider.store import Json


def reduced(amount: int, coupon: Json | None) -> int:
    """The amount after the coupon, never below nothing."""
    if coupon is None:
        return amount
    if coupon["percent_off"] is not None:
        return amount - round(amount * coupon["percent_off"] / 100)
    return max(0, amount - int(coupon["amount_off"]))


def is_valid(coupon: Json, now: int) -> bool:
    """Whether it may still be redeemed."""
    most = coupon["max_redemptions"]
    return (most is None or coupon["times_redeemed"] < most) and (
        coupon["redeem_by"] is None or now < coupon["redeem_by"]
    )


def period_end(start: int, recurring: Json) -> int:
    """The end of a period that begins at `start`."""
    begun = datetime.fromtimestamp(start, UTC)
    count = recurring["interval_count"]
    if recurring["interval"] in ("day", "week"):
        return int((begun + timedelta(days=count * (7 if recurring["interval"] == "week" else 1))).timestamp())
    return int(_months_later(begun, count * (12 if recurring["interval"] == "year" else 1)).timestamp())


def months_later(start: int, months: int) -> int:
    """The same day of another month, or its last day."""
    return int(_months_later(datetime.fromtimestamp(start, UTC), months).timestamp())


def _months_later(begun: datetime, months: int) -> datetime:
    year, month = divmod(begun.year * 12 + begun.month - 1 + months, 12)
    return begun.replace(year=year, month=month + 1, day=min(begun.day, calendar.monthrange(year, month + 1)[1]))
