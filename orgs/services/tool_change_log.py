"""Admin log of changes in a vendor's tools, limited per vendor and hour."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from django.db.models import Sum

from audit.actor import Actor, Target
from audit.event_types import EventType
from audit.record import record_admin
from gateway.lib import clock
from orgs.models import Organization, ToolLook
from orgs.services.tool_comparison import Comparison

# Tool names per row; the row has the full count.
NAMED_IN_LOG = 20
# Rows per organization, vendor and window; the tool access page shows the current state.
RECORDED_PER_WINDOW = 4
WINDOW = timedelta(hours=1)


def record_changes(organization: Organization, look: ToolLook, found: Comparison, actor: Actor) -> None:
    """Write a row, or count the change in `folded` once the window is used up. The caller holds the lock."""
    now = clock.now()
    if look.recorded_since is None or now - look.recorded_since >= WINDOW:
        look.recorded_since, look.recorded = now, 0
    others = ToolLook.objects.filter(organization=organization, vendor=look.vendor, recorded_since__gt=now - WINDOW)
    # All lists of the vendor share one budget.
    elsewhere = others.exclude(pk=look.pk).aggregate(total=Sum("recorded"))["total"] or 0
    if look.recorded + elsewhere >= RECORDED_PER_WINDOW:
        look.folded += 1
    else:
        _record(organization, look, found, actor)
        look.recorded, look.folded = look.recorded + 1, 0
    look.save(update_fields=["recorded_since", "recorded", "folded"])


def _record(organization: Organization, look: ToolLook, found: Comparison, actor: Actor) -> None:
    tools = sorted((*found.added, *found.changed, *found.removed))
    record_admin(
        EventType.VENDOR_TOOLS_CHANGED,
        org_id=organization.id,
        actor=actor,
        target=Target(id=look.vendor, label=look.vendor),
        metadata={
            "vendor": look.vendor,
            "tools": tools[:NAMED_IN_LOG],
            "count": len(tools),
            "added": _named(found.added),
            "changed": _named(found.changed),
            "removed": _named(found.removed),
            **({"credential_scope": look.credential_scope} if look.credential_scope else {}),
            **({"folded": look.folded} if look.folded else {}),
        },
    )


def _named(tools: Sequence[str]) -> list[str]:
    return list(tools[:NAMED_IN_LOG])
