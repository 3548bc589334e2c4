"""What an organization reads of the health of its vendors. Reading never probes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from credentials.selectors import connected_vendors, vendors_in_use
from gateway.catalog import registry as catalog
from gateway.catalog.vendor import Vendor
from gateway.coordination import registry
from orgs.models import Organization
from proxy.health import store
from proxy.health.states import LABELS, HealthStatus, VendorHealth

_WORST_FIRST = (
    HealthStatus.DOWN,
    HealthStatus.DEGRADED,
    HealthStatus.UNKNOWN,
    HealthStatus.REACHABLE,
    HealthStatus.HEALTHY,
)


@dataclass(frozen=True, slots=True)
class HealthEntry:
    """One connected vendor. `monitored` is False at a customer-supplied address: it stays unknown. Spec: §2, §3"""

    vendor_slug: str
    display_name: str
    status: HealthStatus
    last_checked: datetime | None
    latency_ms: int | None
    version: str
    error_detail: str | None
    monitored: bool

    @property
    def label(self) -> str:
        """What tenants read."""
        return LABELS[self.status]


def vendor_health(organization: Organization) -> list[HealthEntry]:
    """The organization's connected vendors by display name. Spec: §4.1 · D132"""
    entries = _entries(connected_vendors(organization))
    return sorted(entries, key=lambda entry: (entry.display_name.casefold(), entry.vendor_slug))


def every_vendor_health() -> list[HealthEntry]:
    """Every vendor that is watched for some organization; those at customer-supplied addresses are not. Spec: §3"""
    return [entry for entry in _entries(vendors_in_use()) if entry.monitored]


def _entries(slugs: Iterable[str]) -> list[HealthEntry]:
    known = catalog.load()
    vendors = [vendor for slug in slugs if (vendor := known.get(slug))]
    states = store.read(registry.current(), [vendor.slug for vendor in vendors if not vendor.customer_supplied_url])
    return [_entry(vendor, states.get(vendor.slug, store.UNKNOWN)) for vendor in vendors]


def _entry(vendor: Vendor, state: VendorHealth) -> HealthEntry:
    return HealthEntry(
        vendor.slug,
        vendor.name,
        state.status,
        state.last_checked,
        state.latency_ms,
        state.version,
        state.error_detail,
        monitored=not vendor.customer_supplied_url,
    )


def worst_first(entries: list[HealthEntry]) -> list[HealthEntry]:
    """For people who look for trouble."""
    return sorted(entries, key=lambda entry: (_WORST_FIRST.index(entry.status), entry.display_name.casefold()))
