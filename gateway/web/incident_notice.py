"""The notice on pages of signed-in people while an incident is open that touches them: no statement of its own.

The open incidents come from what the process knows of them. Whether a vendor's incident touches an organization is a
column of the statement that a page asks anyway for the person's memberships.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from django.db.models import QuerySet
from django.utils.functional import Promise

from credentials.selectors import connects
from gateway.coordination import backend
from gateway.lib import clock
from gateway.status.open_incidents import OpenIncident, known
from gateway.status.stages import Severity, Stage
from orgs.models import Membership

# More vendors in open incidents at one time touch everyone.
MOST_VENDORS = 20
Memberships = TypeVar("Memberships", bound="QuerySet[Membership]")


@dataclass(frozen=True, slots=True)
class IncidentNotice:
    """The worst open incident. `more`: others that are open."""

    id: str
    title: str
    is_maintenance: bool
    is_critical: bool
    stage: str | Promise
    updated_at: datetime
    more: int


def open_now() -> Sequence[OpenIncident]:
    """Those that have begun, worst first."""
    return known.current(backend.current(), clock.now())


def touching_everyone(found: Sequence[OpenIncident]) -> list[OpenIncident]:
    return [each for each in found if each.vendors is None]


def with_touched_vendors(rows: Memberships, found: Sequence[OpenIncident]) -> Memberships:
    """The same rows in the same statement, each with a column for each vendor of `found`."""
    vendors = _vendors(found)
    return rows.annotate(**{_column(at): connects(slug) for at, slug in enumerate(vendors)}) if vendors else rows


def touching(membership: Membership, found: Sequence[OpenIncident]) -> list[OpenIncident]:
    """Those of `found` that touch the organization of a row of `with_touched_vendors`."""
    vendors = _vendors(found)
    touched = {slug for at, slug in enumerate(vendors) if getattr(membership, _column(at))}
    return [each for each in found if not vendors or each.vendors is None or touched & each.vendors]


def incident_notice(incidents: Sequence[OpenIncident]) -> IncidentNotice | None:
    if not incidents:
        return None
    first = incidents[0]
    stage = Stage(first.stage).label if first.stage in Stage.values else first.stage
    return IncidentNotice(
        id=first.id,
        title=first.title,
        is_maintenance=first.is_maintenance,
        is_critical=first.severity == Severity.CRITICAL,
        stage=stage,
        updated_at=first.updated_at,
        more=len(incidents) - 1,
    )


def _vendors(found: Sequence[OpenIncident]) -> list[str]:
    """None of them where there are too many to ask for."""
    slugs = sorted({slug for each in found for slug in each.vendors or ()})
    return slugs if len(slugs) <= MOST_VENDORS else []


def _column(at: int) -> str:
    return f"incident_touches_{at}"
