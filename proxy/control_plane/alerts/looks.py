"""The looks: for each kind, the causes that are there now, of all organizations in a few statements.

A look gets the alerts of its kind that count, and the organizations that the admin log has named since the last one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Count, F, Q

from audit.call_status import CallStatus
from audit.event_types import EventType
from audit.models import REJECTED_CREDENTIAL, LogDestination, RequestAuditEntry
from audit.shipping_models import DestinationStatus
from billing.entitlements import state_of_row
from billing.models import Subscription
from billing.states import PlanState, SubscriptionStatus
from credentials.models import Credential, VendorConnection
from credentials.rejections import summaries_with_rejection
from credentials.selectors import connected_pairs, organizations_by_vendor
from gateway.catalog import registry
from gateway.lib.ids import first_log_id_at
from oauth_ext.models import Client
from orgs.alert_terms import (
    EXPIRY_DAYS,
    SPIKE_BEGINS_AT,
    SPIKE_ENDS_BELOW,
    SPIKE_WINDOW,
    AlertKind,
)
from orgs.models import Alert, KnownTool, Organization
from proxy.control_plane.alerts.facts import (
    DELETED,
    DISCONNECTED,
    EXPIRED,
    EXTENDED,
    PAUSED,
    SIGN_IN_NEEDED,
    Cause,
    Fact,
    Found,
)
from proxy.control_plane.health.states import HealthStatus, VendorHealth

REJECTED_WITHIN = timedelta(hours=1)
# The credentials of so many organizations are looked at in one round, of each: newly rejected, and told of.
ORGANIZATIONS_A_LOOK = 200
PLAN = "plan"


@dataclass(frozen=True, slots=True)
class Round:
    """Facts that several looks share. `health`: the states of the vendors in use, as readers see them.

    `named`: by event of the admin log, the organizations that had one since the last round. `choose`: of many, so many
    by chance.
    """

    now: datetime
    health: Mapping[str, VendorHealth]
    named: Mapping[str, Collection[UUID]]
    choose: Callable[[Sequence[UUID], int], Sequence[UUID]] = field(default=random.sample)


def down_vendors(this: Round, counting: Sequence[Alert]) -> Found:
    down = {slug: state for slug, state in this.health.items() if state.status is HealthStatus.DOWN}
    catalog = registry.load()
    facts = [
        Fact(
            Cause(org_id, AlertKind.VENDOR_DOWN, slug),
            catalog.name_of(slug),
            down[slug].error_detail or "",
            since=down[slug].failing_since,
        )
        for slug, org_ids in organizations_by_vendor(down).items()
        for org_id in org_ids
    ]
    undecided = {cause_of(each) for each in counting if _is_undecided(this.health.get(each.cause))}
    return Found(facts, undecided, _disconnected(_over(counting, facts)))


def _over(counting: Sequence[Alert], facts: Sequence[Fact]) -> list[Cause]:
    """The causes that have no fact any more."""
    here = {fact.cause for fact in facts}
    return [cause for cause in map(cause_of, counting) if cause not in here]


def _disconnected(causes: Sequence[Cause]) -> dict[Cause, str]:
    """Ends of the vendors that the organization has disconnected."""
    if not causes:
        return {}
    pairs = connected_pairs({each.org_id for each in causes}, {each.key for each in causes})
    return {each: DISCONNECTED for each in causes if (each.org_id, each.key) not in pairs}


def _is_undecided(state: VendorHealth | None) -> bool:
    # After a pause of the monitor, a vendor that does not answer has one failure again.
    return state is not None and (
        state.status is HealthStatus.UNKNOWN or (state.status is HealthStatus.DEGRADED and state.failures > 0)
    )


def rejected_credentials(this: Round, counting: Sequence[Alert]) -> Found:
    told_of = {each.organization_id for each in counting}
    fresh = RequestAuditEntry.objects.filter(
        REJECTED_CREDENTIAL, id__gte=first_log_id_at(this.now - REJECTED_WITHIN)
    ).values_list("org_id", flat=True)
    checked = this.named.get(EventType.CREDENTIAL_CHECKED, ())
    new = sorted({*fresh.distinct(), *checked} - told_of)
    looked_at = {*_some(this, new), *_some(this, sorted(told_of))}
    facts = _sign_ins_needed()
    catalog = registry.load()
    for organization in Organization.objects.filter(pk__in=looked_at):
        facts += [
            Fact(
                Cause(organization.pk, AlertKind.CREDENTIAL_REJECTED, str(row.id)),
                catalog.name_of(row.vendor),
                row.name or row.team_name or row.service_client_name,
                since=row.rejected_since or row.rejected_at,
            )
            for row in summaries_with_rejection(organization)
            if row.rejected_at
        ]
    over = _over([each for each in counting if each.organization_id in looked_at], facts)
    left = {
        str(pk) for pk in Credential.objects.filter(pk__in=[each.key for each in over]).values_list("pk", flat=True)
    }
    return Found(
        facts,
        {cause_of(each) for each in counting if each.organization_id not in looked_at},
        {each: DELETED for each in over if each.key not in left},
    )


def _sign_ins_needed() -> list[Fact]:
    """Connections of organizations whose vendor no longer renews them. A person's own is told to the person."""
    catalog = registry.load()
    rows = VendorConnection.objects.filter(status=VendorConnection.Status.NEEDS_SIGN_IN, credential__isnull=False)
    return [
        Fact(Cause(org_id, AlertKind.CREDENTIAL_REJECTED, str(pk)), catalog.name_of(vendor), SIGN_IN_NEEDED)
        for org_id, pk, vendor in rows.values_list("organization_id", "credential_id", "vendor")
    ]


def _some(this: Round, org_ids: Sequence[UUID]) -> Sequence[UUID]:
    return org_ids if len(org_ids) <= ORGANIZATIONS_A_LOOK else this.choose(org_ids, ORGANIZATIONS_A_LOOK)


def expiring_agents(this: Round, counting: Sequence[Alert]) -> Found:
    soon = this.now + timedelta(days=EXPIRY_DAYS[0])
    rows = Client.objects.filter(organization__isnull=False, expires_at__gt=this.now, expires_at__lte=soon)
    facts = [
        Fact(
            Cause(org_id, AlertKind.AGENT_EXPIRING, client_id),
            name,
            expires_at.date().isoformat(),
            level=sum(expires_at <= this.now + timedelta(days=days) for days in EXPIRY_DAYS),
        )
        for org_id, client_id, name, expires_at in rows.values_list(
            "organization_id", "client_id", "name", "expires_at"
        )
    ]
    over = _over(counting, facts)
    ends = dict(Client.objects.filter(client_id__in=[each.key for each in over]).values_list("client_id", "expires_at"))
    return Found(facts, ends={each: _expiry_end(this.now, ends.get(each.key)) for each in over})


def _expiry_end(now: datetime, expires_at: datetime | None) -> str:
    if expires_at is None:
        return DELETED
    return EXPIRED if expires_at <= now else EXTENDED


def changed_tools(this: Round, counting: Sequence[Alert]) -> Found:
    changed = this.named.get(EventType.VENDOR_TOOLS_CHANGED, ())
    org_ids = {*changed, *(each.organization_id for each in counting)}
    rows = KnownTool.objects.filter(organization_id__in=org_ids).exclude(seen_sha256=F("approved_sha256"))
    waiting = list(rows.values_list("organization_id", "vendor").annotate(Count("id")))
    # The tools of a disconnected vendor are remembered, and wait for nobody.
    pairs = connected_pairs({org_id for org_id, _, _ in waiting}, {vendor for _, vendor, _ in waiting})
    catalog = registry.load()
    facts = [
        Fact(Cause(org_id, AlertKind.TOOLS_CHANGED, vendor), catalog.name_of(vendor), str(count))
        for org_id, vendor, count in waiting
        if (org_id, vendor) in pairs
    ]
    return Found(facts, ends=_disconnected(_over(counting, facts)))


def error_spikes(this: Round, counting: Sequence[Alert]) -> Found:
    told_of = {cause_of(each) for each in counting}
    least, share = SPIKE_BEGINS_AT
    facts = []
    for org_id, vendor, failed, calls in _failing_calls(this):
        cause = Cause(org_id, AlertKind.ERROR_SPIKE, vendor)
        begins = failed >= least and failed >= share * calls
        if begins or (cause in told_of and failed >= SPIKE_ENDS_BELOW * calls):
            facts.append(Fact(cause, registry.load().name_of(vendor), f"{failed}/{calls}"))
    # Calls to a vendor that is down fail: that is told already.
    down = {slug for slug, state in this.health.items() if state.status is HealthStatus.DOWN}
    return Found(
        [fact for fact in facts if fact.cause.key not in down],
        {cause for cause in told_of if cause.key in down},
    )


def _failing_calls(this: Round) -> Iterable[tuple[UUID, str, int, int]]:
    """(organization, vendor, failed calls, calls) where one has failed. Denied and rate-limited ones are no calls."""
    status = CallStatus.ERROR.value
    rows = RequestAuditEntry.objects.filter(
        # The id holds the time: the primary key finds the rows.
        id__gte=first_log_id_at(this.now - SPIKE_WINDOW),
        status__in=[status, CallStatus.SUCCESS.value],
    ).exclude(vendor="")
    failed = Count("id", filter=Q(status=status))
    return rows.values_list("org_id", "vendor").annotate(failed=failed, calls=Count("id")).filter(failed__gt=0)


def failing_destinations(this: Round, counting: Sequence[Alert]) -> Found:
    rows = LogDestination.objects.filter(enabled=True, status=DestinationStatus.FAILING)
    facts = [
        Fact(
            Cause(row.org_id, AlertKind.LOG_SHIPPING_FAILING, str(row.pk)),
            row.label,
            row.last_error,
            since=row.failing_since,
        )
        for row in rows.only("org_id", "label", "last_error", "failing_since")
    ]
    over = _over(counting, facts)
    left = LogDestination.objects.filter(pk__in=[each.key for each in over])
    is_enabled = {str(pk): enabled for pk, enabled in left.values_list("pk", "enabled")}
    gone = [each for each in over if not is_enabled.get(each.key)]
    return Found(facts, ends={each: PAUSED if each.key in is_enabled else DELETED for each in gone})


def owed_plans(this: Round, counting: Sequence[Alert]) -> Found:
    """Level 2: the plan has ended. An organization that never owed has no alert."""
    told_of = {each.organization_id for each in counting}
    owing = Q(status=SubscriptionStatus.PAST_DUE.value) | Q(organization_id__in=told_of)
    return Found([fact for row in Subscription.objects.filter(owing) if (fact := _owed(row, this.now, told_of))])


def _owed(row: Subscription, now: datetime, told_of: Collection[UUID]) -> Fact | None:
    has_ended = state_of_row(row, now) is PlanState.LAPSED
    if has_ended and row.organization_id not in told_of:
        return None
    if not has_ended and row.status != SubscriptionStatus.PAST_DUE:
        return None  # paid
    cause = Cause(row.organization_id, AlertKind.PLAN_PAST_DUE, PLAN)
    return Fact(cause, PLAN, level=1 + has_ended, since=row.past_due_since)


def cause_of(alert: Alert) -> Cause:
    return Cause(alert.organization_id, AlertKind(alert.kind), alert.cause)


Look = Callable[[Round, Sequence[Alert]], Found]
EACH_ROUND: Mapping[AlertKind, Look] = {
    AlertKind.VENDOR_DOWN: down_vendors,
    AlertKind.CREDENTIAL_REJECTED: rejected_credentials,
    AlertKind.TOOLS_CHANGED: changed_tools,
    AlertKind.LOG_SHIPPING_FAILING: failing_destinations,
    AlertKind.PLAN_PAST_DUE: owed_plans,
}
# These read more rows, and what they look for changes slowly.
EACH_SLOW_ROUND: Mapping[AlertKind, Look] = {
    **EACH_ROUND,
    AlertKind.AGENT_EXPIRING: expiring_agents,
    AlertKind.ERROR_SPIKE: error_spikes,
}
