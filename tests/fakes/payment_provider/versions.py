"""Older API versions: periods on top of a subscription and the subscription on top of an invoice before 2025-03-31."""

from __future__ import annotations

import copy
import re
from typing import Any

from tests.fakes.payment_provider.errors import Refusal
from tests.fakes.payment_provider.store import Json

ITEMS_HAVE_PERIODS = "2025-03-31"
_VERSION = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}(\.[a-z_]+)?")


def checked(version: str) -> str:
    """Raises: Refusal for a text that is no version."""
    if not _VERSION.fullmatch(version):
        raise Refusal(400, f"Invalid Stripe API version: {version}", begun=False)
    return version


def as_of(version: str, value: Any) -> Any:
    """A copy of an object, with all objects inside, in the shape of a version."""
    made = copy.deepcopy(value)
    if version[:10] < ITEMS_HAVE_PERIODS:
        _aged(made)
    return made


def _aged(value: Any) -> None:
    if isinstance(value, list):
        for each in value:
            _aged(each)
    if not isinstance(value, dict):
        return
    for each in value.values():
        _aged(each)
    if value.get("object") == "subscription":
        _periods_on_top(value)
    if value.get("object") == "invoice":
        _subscription_on_top(value)
    if value.get("object") == "event":
        _periods_on_top(value["data"].get("previous_attributes", {}))


def _periods_on_top(subscription: Json) -> None:
    for item in (subscription.get("items") or {}).get("data", []):
        for name in ("current_period_start", "current_period_end"):
            if name in item:
                subscription[name] = item.pop(name)


def _subscription_on_top(invoice: Json) -> None:
    invoice["subscription"] = invoice.pop("parent")["subscription_details"]["subscription"]
    invoice["paid"] = invoice["status"] == "paid"
