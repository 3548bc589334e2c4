"""The content of the status page: parts with their bars, and incidents. Four statements for a stranger."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import override

from credentials.selectors import vendors_of_person
from gateway.catalog import registry
from gateway.status import history
from gateway.status.history import PartHistory
from gateway.status.incidents import part_names, shown
from gateway.status.models import Incident
from gateway.status.parts import PARTS, VENDORS, Status, of_vendor, worst
from gateway.status.samples import KEPT_DAYS
from gateway.status.stages import Kind, Severity, Stage
from orgs.models import User

# Of the drawing, in units of its view box.
BAR_STEP = 8
BAR_GAP = 2


@dataclass(frozen=True, slots=True)
class Bars:
    """A run of bars, drawn as one dashed line from `x1` to `x2`."""

    status: Status
    x1: int
    x2: int


@dataclass(frozen=True, slots=True)
class PartRow:
    """`english_name`: for machines."""

    name: str | Promise
    english_name: str
    history: PartHistory
    # The title of the open incident that names the part.
    incident: IncidentRow | None

    @property
    def bars(self) -> list[Bars]:
        return list(_bars(self.history))

    @property
    def days_in_trouble(self) -> int:
        return sum(1 for run in self.history.runs if run.down_s or run.degraded_s)


@dataclass(frozen=True, slots=True)
class UpdateRow:
    stage: Stage
    posted_at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class IncidentRow:
    """`updates`: newest first. `part_names`: as pages call them."""

    id: str
    kind: Kind
    title: str
    severity: Severity
    parts: Sequence[str]
    part_names: Sequence[str]
    starts_at: datetime
    ends_at: datetime | None
    ended_at: datetime | None
    updates: Sequence[UpdateRow]

    @property
    def is_maintenance(self) -> bool:
        return self.kind is Kind.MAINTENANCE


@dataclass(frozen=True, slots=True)
class Board:
    """`open`, `past`: newest first. `planned`: maintenance that has not begun, the next one first."""

    status: Status
    parts: Sequence[PartRow]
    vendors: Sequence[PartRow]
    open: Sequence[IncidentRow]
    planned: Sequence[IncidentRow]
    past: Sequence[IncidentRow]
    checked_at: datetime | None
    days: int = KEPT_DAYS
    width: int = KEPT_DAYS * BAR_STEP - BAR_GAP


def board(now: datetime, person: User | None) -> Board:
    """Vendors are named to everyone where STATUS_VENDORS is on, and else only those of the person's organizations."""
    catalog = registry.load()
    slugs = _named_vendors(person)
    vendors = sorted(
        (each for each in catalog.all() if each.slug in slugs and not each.customer_supplied_url),
        key=lambda each: each.name.casefold(),
    )
    names: dict[str, str] = {of_vendor(each.slug): each.name for each in catalog.all()}
    incidents = [_incident_row(each, names) for each in shown(now)]
    open_ones = [each for each in incidents if each.ended_at is None and each.starts_at <= now]
    found = history.histories([*PARTS, *(of_vendor(each.slug) for each in vendors)], now=now)
    rows = [_part_row(each, names, open_ones) for each in found]
    parts, of_vendors = rows[: len(PARTS)], rows[len(PARTS) :]
    return Board(
        status=_together(parts),
        parts=parts,
        vendors=of_vendors,
        open=open_ones,
        planned=sorted(
            (each for each in incidents if each.ended_at is None and each.starts_at > now),
            key=lambda each: each.starts_at,
        ),
        past=[each for each in incidents if each.ended_at is not None],
        checked_at=max((each.checked_at for each in found if each.checked_at), default=None),
    )


def _named_vendors(person: User | None) -> Collection[str]:
    if settings.STATUS_VENDORS:
        return {each.slug for each in registry.load().all()}
    return vendors_of_person(person) if person else ()


def _together(parts: Sequence[PartRow]) -> Status:
    """A vendor that is away is no outage of the service."""
    own = worst(each.history.status for each in parts if each.history.part != VENDORS)
    vendors = next(each.history.status for each in parts if each.history.part == VENDORS)
    return Status.DEGRADED if own is Status.OPERATIONAL and vendors in (Status.DEGRADED, Status.DOWN) else own


def _part_row(found: PartHistory, names: dict[str, str], open_ones: Sequence[IncidentRow]) -> PartRow:
    name = PARTS.get(found.part) or names[found.part]
    with override(None):
        english = str(name)
    return PartRow(name, english, found, next((each for each in open_ones if found.part in each.parts), None))


def _incident_row(incident: Incident, vendor_names: dict[str, str]) -> IncidentRow:
    return IncidentRow(
        id=str(incident.pk),
        kind=Kind(incident.kind),
        title=incident.title,
        severity=Severity(incident.severity),
        parts=tuple(incident.parts),
        part_names=part_names(incident, {**{part: str(name) for part, name in PARTS.items()}, **vendor_names}),
        starts_at=incident.starts_at,
        ends_at=incident.ends_at,
        ended_at=incident.ended_at,
        updates=[UpdateRow(Stage(each.stage), each.posted_at, each.text) for each in incident.updates.all()],
    )


def _bars(found: PartHistory) -> Iterator[Bars]:
    x = 0
    for run in found.runs:
        width = run.days * BAR_STEP
        yield Bars(run.status, x, x + width - BAR_GAP)
        x += width
