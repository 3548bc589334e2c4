"""The samples of the status page: what the schedule finds of each part. The call path knows nothing of them."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import structlog
from django.conf import settings
from django.db.models import Min

from audit.models import StreamCursor
from audit.seals import CURSOR as SEALS
from gateway.coordination.store import CoordinationStore, CoordinationUnavailable
from gateway.keys import holders
from gateway.lib import clock
from gateway.status import parts
from gateway.status.models import PartStatus
from gateway.status.parts import Status, worst
from gateway.status.samples import HOLDS, record_samples
from orgs.signin import provider
from orgs.signin.provider import ProviderUnavailable
from proxy.control_plane.health import state_cache
from proxy.control_plane.health.leader import vendors_to_probe
from proxy.control_plane.health.states import HealthStatus

log = structlog.get_logger(__name__)
_OF_HEALTH = {
    HealthStatus.HEALTHY: Status.OPERATIONAL,
    HealthStatus.REACHABLE: Status.OPERATIONAL,
    HealthStatus.DEGRADED: Status.DEGRADED,
    HealthStatus.DOWN: Status.DOWN,
    HealthStatus.UNKNOWN: Status.UNKNOWN,
}


def take_samples(store: CoordinationStore) -> None:
    """Sample every part once. That the samples are stored shows that the database takes writes."""
    now = clock.now()
    roles = {holder.name.partition(" ")[0] for holder in holders.running(now)}
    is_counting = _answers(store)
    found = {
        parts.CALLS: _calls(roles, is_counting),
        parts.PAGES: Status.OPERATIONAL if "web" in roles else Status.DOWN,
        parts.SIGN_IN: _sign_in(),
        parts.BACKGROUND: _background(roles, now),
        **_vendors(store),
    }
    record_samples(found, now=clock.now())
    log.info("status sampled", states={part: status.value for part, status in found.items()})


def _answers(store: CoordinationStore) -> bool:
    try:
        store.ping()
    except CoordinationUnavailable:
        return False
    return True


def _calls(roles: Collection[str], is_counting: bool) -> Status:
    """Without the coordination store calls are served, by limits that each process counts alone."""
    if "web" not in roles:
        return Status.DOWN
    return Status.OPERATIONAL if is_counting else Status.DEGRADED


def _sign_in() -> Status:
    """The identity provider answers. The second failure in a row counts as down."""
    if not settings.OIDC_OP_DISCOVERY_URL:
        return Status.UNKNOWN
    try:
        provider.asked_now()
    except ProviderUnavailable as fault:
        log.warning("identity provider away", fault=str(fault))
        before = PartStatus.objects.filter(part=parts.SIGN_IN).values_list("status", flat=True).first()
        return Status.DOWN if before in (Status.DEGRADED, Status.DOWN) else Status.DEGRADED
    return Status.OPERATIONAL


def _background(roles: Collection[str], now: datetime) -> Status:
    """This runs in a worker, by the schedule. The seals of the logs and the worker of log shipping may lag behind."""
    sealed = StreamCursor.objects.filter(name=SEALS).aggregate(last=Min("reached_at"))["last"]
    is_late = sealed is not None and now - sealed > HOLDS
    return Status.DEGRADED if is_late or "shipping" not in roles else Status.OPERATIONAL


def _vendors(store: CoordinationStore) -> dict[str, Status]:
    """Each vendor that is probed, and all of them together: down if all are."""
    slugs = [vendor.slug for vendor in vendors_to_probe() if not vendor.customer_supplied_url]
    health = state_cache.read(store, slugs)
    each = {parts.of_vendor(slug): _OF_HEALTH[health[slug].status] for slug in slugs}
    seen = [status for status in each.values() if status is not Status.UNKNOWN]
    together = worst(seen)
    if together is Status.DOWN and set(seen) != {Status.DOWN}:
        together = Status.DEGRADED
    return {parts.VENDORS: together, **each}
