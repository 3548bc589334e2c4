"""The parts of the status page, and the states that a part can have."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

CALLS, PAGES, SIGN_IN, BACKGROUND, VENDORS = "calls", "pages", "sign-in", "background", "vendors"
PART_MAX_CHARACTERS = 100
_VENDOR = "vendor/"

# In the order of the page. The last one is the vendors that are probed, taken together.
PARTS: dict[str, str | Promise] = {
    CALLS: gettext_lazy("Tool calls"),
    PAGES: gettext_lazy("Pages and API"),
    SIGN_IN: gettext_lazy("Sign-in"),
    BACKGROUND: gettext_lazy("Log shipping and background work"),
    VENDORS: gettext_lazy("Vendors"),
}


class Status(models.TextChoices):
    OPERATIONAL = "operational", gettext_lazy("Operational")
    DEGRADED = "degraded", gettext_lazy("Degraded")
    DOWN = "down", gettext_lazy("Not available")
    # No sample, or none for a while.
    UNKNOWN = "unknown", gettext_lazy("Not known")


_WORST_FIRST = (Status.DOWN, Status.DEGRADED, Status.UNKNOWN, Status.OPERATIONAL)


def worst(found: Iterable[Status]) -> Status:
    """UNKNOWN of none."""
    return min(found, key=_WORST_FIRST.index, default=Status.UNKNOWN)


def of_vendor(slug: str) -> str:
    """The part's name of one vendor."""
    return f"{_VENDOR}{slug}"


def vendor_of(part: str) -> str | None:
    """The vendor's slug; None for a part of the service itself."""
    return part.removeprefix(_VENDOR) if part.startswith(_VENDOR) else None
