"""Leader election for a health round, and its vendors."""

from __future__ import annotations

from django.conf import settings

from credentials.selectors import vendors_in_use
from gateway.catalog import registry as catalog
from gateway.catalog.vendor import Vendor
from gateway.coordination.rules import Rule
from gateway.coordination.store import CoordinationStore


def claim_round(store: CoordinationStore) -> bool:
    """True for the first process that asks in an interval, across all hosts. Spec: §3 · D131"""
    interval_s = settings.HEALTH_PROBE_INTERVAL_S
    return store.hit(Rule("health-round", limit=1, window_s=max(1, interval_s - 2)), "leader").allowed


def vendors_to_probe() -> list[Vendor]:
    """Catalog vendors that any organization connected, by name; all of them where the status page names them."""
    known = catalog.load().all()
    if settings.STATUS_VENDORS:
        return list(known)
    used = vendors_in_use()
    return [vendor for vendor in known if vendor.slug in used]
