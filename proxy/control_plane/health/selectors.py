"""Vendor health as organizations read it. Reading never probes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from credentials.selectors import CredentialSummary, connected_among, credential_summaries, vendors_in_use
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog
from gateway.catalog.vendor import Vendor
from gateway.coordination import backend
from gateway.lib import clock
from orgs.models import Organization
from proxy.control_plane.health import state_cache
from proxy.control_plane.health.states import LABELS, UNKNOWN, HealthStatus, VendorHealth
from proxy.control_plane.health.words import joined
from proxy.vendors import shared_circuits
from proxy.vendors.circuit import CircuitState
from proxy.vendors.era_verdicts import Verdict, stored_verdicts
from proxy.vendors.shared_circuits import SharedCircuit

_WORST_FIRST = (
    HealthStatus.DOWN,
    HealthStatus.DEGRADED,
    HealthStatus.UNKNOWN,
    HealthStatus.REACHABLE,
    HealthStatus.HEALTHY,
)


@dataclass(frozen=True, slots=True)
class HealthEntry:
    """One connected vendor. Spec: §2, §3"""

    vendor_slug: str
    display_name: str
    status: HealthStatus
    last_checked: datetime | None
    latency_ms: int | None
    version: str
    error_detail: str | None
    # False at a customer-supplied address, whose status stays unknown.
    monitored: bool
    # An oddity in the answers of a vendor that does answer.
    remark: str = ""
    # When the first of the failures in a row happened; None while the vendor answers.
    failing_since: datetime | None = None
    # The worst circuit over the organization's credentials; None while all are closed. docs/decisions/0023
    circuit: SharedCircuit | None = None
    # The newest that calls have found over the organization's credentials; None before the first. docs/decisions/0106
    revision: Verdict | None = None

    @property
    def circuit_state(self) -> CircuitState:
        return CircuitState.CLOSED if self.circuit is None else self.circuit.state(clock.now())

    @property
    def retry_at(self) -> datetime | None:
        # When the open circuit lets one call through; in the past for a half-open one.
        return None if self.circuit is None else self.circuit.until

    @property
    def protocol_version(self) -> str:
        return "" if self.revision is None else self.revision.version

    @property
    def protocol_version_at(self) -> datetime | None:
        return None if self.revision is None else self.revision.at

    @property
    def detail(self) -> str:
        return joined(self.error_detail, self.remark)

    @property
    def label(self) -> str:
        return LABELS[self.status]


def vendor_health(organization: Organization) -> list[HealthEntry]:
    """The organization's connected vendors by display name. Spec: §4.1 · D132"""
    return health_of(credential_summaries(organization), registry.load())


def health_of(credentials: Sequence[CredentialSummary], catalog: Catalog) -> list[HealthEntry]:
    """The same of an organization whose credentials are loaded already."""
    circuits, revisions = _circuits(credentials), _revisions(credentials)
    found = _entries(connected_among(credentials), catalog)
    entries = [
        replace(entry, circuit=circuits.get(entry.vendor_slug), revision=revisions.get(entry.vendor_slug))
        for entry in found
    ]
    return sorted(entries, key=lambda entry: (entry.display_name.casefold(), entry.vendor_slug))


def every_vendor_health() -> list[HealthEntry]:
    """All monitored vendors that any organization uses. Spec: §3"""
    return [entry for entry in _entries(vendors_in_use(), registry.load()) if entry.monitored]


def down_among(vendors: Iterable[str]) -> set[str]:
    """The vendors that do not answer the monitor."""
    states = state_cache.read(backend.current(), vendors)
    return {slug for slug, state in states.items() if state.status is HealthStatus.DOWN}


def circuit_of(vendor: str, credential_ids: Iterable[UUID]) -> SharedCircuit | None:
    """The circuit that blocks calls with these credentials longest; None if none does."""
    names = [
        shared_circuits.vendor_wide(vendor),
        *(shared_circuits.of_credential(vendor, one) for one in credential_ids),
    ]
    found = shared_circuits.published(backend.current(), names).values()
    return max(found, key=lambda circuit: circuit.until, default=None)


def _circuits(credentials: Iterable[CredentialSummary]) -> dict[str, SharedCircuit]:
    names: dict[str, str] = {}
    for connection in credentials:
        names[shared_circuits.vendor_wide(connection.vendor)] = connection.vendor
        names[shared_circuits.of_credential(connection.vendor, connection.id)] = connection.vendor
    worst: dict[str, SharedCircuit] = {}
    for name, circuit in shared_circuits.published(backend.current(), names).items():
        known = worst.get(names[name])
        if known is None or circuit.until > known.until:
            worst[names[name]] = circuit
    return worst


def _revisions(credentials: Sequence[CredentialSummary]) -> dict[str, Verdict]:
    found = stored_verdicts(backend.current(), [(each.vendor, each.id) for each in credentials])
    newest: dict[str, Verdict] = {}
    for each in credentials:
        verdict, known = found.get(each.id), newest.get(each.vendor)
        if verdict is not None and (known is None or verdict.at_s > known.at_s):
            newest[each.vendor] = verdict
    return newest


def _entries(slugs: Iterable[str], catalog: Catalog) -> list[HealthEntry]:
    vendors = [vendor for slug in slugs if (vendor := catalog.get(slug))]
    states = state_cache.read(
        backend.current(), [vendor.slug for vendor in vendors if not vendor.customer_supplied_url]
    )
    return [_entry(vendor, states.get(vendor.slug, UNKNOWN)) for vendor in vendors]


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
        remark=state.remark,
        failing_since=state.failing_since,
    )


def worst_first(entries: list[HealthEntry]) -> list[HealthEntry]:
    return sorted(entries, key=lambda entry: (_WORST_FIRST.index(entry.status), entry.display_name.casefold()))
