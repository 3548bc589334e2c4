"""Admin log of changes in a vendor's tools, limited per vendor and hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Sum

from audit.actor import Actor, Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from gateway.lib import clock
from orgs.models import Organization, ToolSnapshot
from orgs.services.tool_comparison import Comparison

# Tool names per row; the row has the full count.
NAMED_IN_LOG = 20
# Rows per organization, vendor and window; the tool access page shows the current state.
RECORDED_PER_WINDOW = 4
WINDOW = timedelta(hours=1)


def record_changes(organization: Organization, snapshot: ToolSnapshot, found: Comparison, actor: Actor) -> None:
    """Write a row, or count the change in `folded` once the window is used up. The caller holds the lock."""
    now = clock.now()
    if snapshot.recorded_since is None or now - snapshot.recorded_since >= WINDOW:
        snapshot.recorded_since, snapshot.recorded = now, 0
    others = ToolSnapshot.objects.filter(
        organization=organization, vendor=snapshot.vendor, recorded_since__gt=now - WINDOW
    )
    # All lists of the vendor share one budget.
    elsewhere = others.exclude(pk=snapshot.pk).aggregate(total=Sum("recorded"))["total"] or 0
    if snapshot.recorded + elsewhere >= RECORDED_PER_WINDOW:
        snapshot.folded += 1
    else:
        _record(organization, snapshot, found, actor)
        snapshot.recorded, snapshot.folded = snapshot.recorded + 1, 0
    snapshot.save(update_fields=["recorded_since", "recorded", "folded"])


def _record(organization: Organization, snapshot: ToolSnapshot, found: Comparison, actor: Actor) -> None:
    tools = sorted((*found.added, *found.changed, *found.removed))
    record_admin(
        EventType.VENDOR_TOOLS_CHANGED,
        org_id=organization.id,
        actor=actor,
        target=Target(id=snapshot.vendor, label=snapshot.vendor),
        metadata={
            "vendor": snapshot.vendor,
            "tools": tools[:NAMED_IN_LOG],
            "count": len(tools),
            "added": _named(found.added),
            "changed": _named(found.changed),
            "removed": _named(found.removed),
            **({"credential_scope": snapshot.credential_scope} if snapshot.credential_scope else {}),
            **({"folded": snapshot.folded} if snapshot.folded else {}),
        },
    )


def _named(tools: Sequence[str]) -> list[str]:
    return list(tools[:NAMED_IN_LOG])
