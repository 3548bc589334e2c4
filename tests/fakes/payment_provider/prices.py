"""Amounts and periods: what a discount takes off and when a period ends."""

from __future__ import annotations

import calendar
from datetime import UTC, datetime

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
    """The end of a period of months that begins at `start`."""
    return months_later(start, recurring["interval_count"])


def months_later(start: int, months: int) -> int:
    """The same day of another month, or its last day."""
    begun = datetime.fromtimestamp(start, UTC)
    year, month = divmod(begun.year * 12 + begun.month - 1 + months, 12)
    day = min(begun.day, calendar.monthrange(year, month + 1)[1])
    return int(begun.replace(year=year, month=month + 1, day=day).timestamp())
