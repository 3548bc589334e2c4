"""Incidents and maintenance: staff post them and their updates, in order; pages read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q, QuerySet

from gateway.catalog import registry
from gateway.coordination import backend
from gateway.lib import clock
from gateway.lib.errors import Conflict, Invalid, NotFound
from gateway.lib.sentences import sentence
from gateway.lib.text import is_unseen
from gateway.status import open_incidents
from gateway.status.models import (
    LABEL_MAX_CHARACTERS,
    TEXT_MAX_CHARACTERS,
    TITLE_MAX_CHARACTERS,
    Incident,
    IncidentUpdate,
)
from gateway.status.parts import PARTS, of_vendor, vendor_of
from gateway.status.stages import STAGES, Kind, Severity, Stage

log = structlog.get_logger(__name__)
_LINE_ENDS = dict.fromkeys(map(ord, "\r\n\t"))
UNSEEN = sentence("Control and direction characters are not allowed.")
SHOWN_FOR = timedelta(days=90)
MOST_SHOWN = 50


@dataclass(frozen=True, slots=True)
class Poster:
    """The staff member who posts."""

    id: str
    label: str


@dataclass(frozen=True, slots=True)
class NewIncident:
    """`starts_at`: None means now. `ends_at`: of maintenance only."""

    kind: Kind
    title: str
    severity: Severity
    parts: Sequence[str]
    text: str
    starts_at: datetime | None = None
    ends_at: datetime | None = None


@transaction.atomic
def post_incident(*, poster: Poster, new: NewIncident) -> Incident:
    """Open at its first stage, with the first text. Raises: Invalid, with fields."""
    now = clock.now()
    _check(new, now)
    incident = Incident.objects.create(
        kind=new.kind,
        title=new.title.strip(),
        severity=new.severity,
        parts=list(new.parts),
        starts_at=new.starts_at or now,
        ends_at=new.ends_at,
        posted_at=now,
    )
    _append(incident, STAGES[new.kind][0], new.text, poster, now)
    return incident


@transaction.atomic
def post_update(*, poster: Poster, incident_id: UUID, stage: Stage, text: str) -> IncidentUpdate:
    """Add an update; the last stage ends the incident. Raises: NotFound; Conflict once it has ended; Invalid."""
    incident = Incident.objects.select_for_update().filter(pk=incident_id).first()
    if incident is None:
        raise NotFound
    if incident.ended_at is not None:
        raise Conflict(sentence("This incident has ended. Post a new one."))
    left = stages_left(incident)
    if stage not in left:
        raise Invalid(fields={"stage": [sentence("Choose the current stage or a later one.")]})
    _check_text(text)
    now = clock.now()
    if stage is left[-1]:
        incident.ended_at = now
        incident.save(update_fields=["ended_at"])
    return _append(incident, stage, text, poster, now)


def stages_left(incident: Incident) -> tuple[Stage, ...]:
    """Of the next update: the current stage and the later ones."""
    order, last = STAGES[Kind(incident.kind)], incident.updates.first()
    return order if last is None else order[order.index(Stage(last.stage)) :]


def _append(incident: Incident, stage: Stage, text: str, poster: Poster, now: datetime) -> IncidentUpdate:
    update = IncidentUpdate.objects.create(
        incident=incident,
        stage=stage,
        text=text.strip(),
        posted_at=now,
        posted_by_id=poster.id,
        posted_by=poster.label[:LABEL_MAX_CHARACTERS],
    )
    log.info("incident posted", incident=str(incident.pk), stage=stage.value, user_id=poster.id)
    transaction.on_commit(publish)
    return update


def _check(new: NewIncident, now: datetime) -> None:
    fields: dict[str, list[str]] = {}
    if not 1 <= len(new.title.strip()) <= TITLE_MAX_CHARACTERS:
        fields["title"] = [sentence("Enter a title of at most %(most)s characters.", most=TITLE_MAX_CHARACTERS)]
    elif _has_unseen(new.title):
        fields["title"] = [UNSEEN]
    if not new.parts or not set(new.parts) <= set(known_parts()):
        fields["parts"] = [sentence("Choose the affected parts.")]
    if new.kind is Kind.MAINTENANCE:
        if new.starts_at is None or new.ends_at is None:
            fields["starts_at"] = [sentence("Enter the start and the end of the maintenance.")]
        elif new.ends_at <= max(new.starts_at, now):
            fields["ends_at"] = [sentence("The end must be after the start and in the future.")]
    elif new.starts_at is not None and new.starts_at > now:
        fields["starts_at"] = [sentence("An incident can’t start in the future. Plan maintenance instead.")]
    elif new.ends_at is not None:
        fields["ends_at"] = [sentence("An incident ends with its last update. Leave the end empty.")]
    if fields:
        raise Invalid(fields=fields)
    _check_text(new.text)


def _check_text(text: str) -> None:
    if not 1 <= len(text.strip()) <= TEXT_MAX_CHARACTERS:
        raise Invalid(
            fields={"text": [sentence("Enter text of at most %(most)s characters.", most=TEXT_MAX_CHARACTERS)]}
        )
    if _has_unseen(text.translate(_LINE_ENDS)):
        raise Invalid(fields={"text": [UNSEEN]})


def _has_unseen(text: str) -> bool:
    """Such characters reorder a page, and a feed cannot hold them at all."""
    return any(map(is_unseen, text))


def known_parts() -> dict[str, str]:
    """The names of all parts that an incident can touch."""
    vendors = {of_vendor(vendor.slug): vendor.name for vendor in registry.load().all()}
    return {**{part: str(name) for part, name in PARTS.items()}, **vendors}


def part_names(incident: Incident, names: dict[str, str]) -> list[str]:
    """A vendor that has left the catalog keeps its slug."""
    return [names.get(part) or vendor_of(part) or part for part in incident.parts]


def shown(now: datetime) -> list[Incident]:
    """Open ones and those of the last SHOWN_FOR, newest first, with their updates; two statements."""
    return list(_shown(now).prefetch_related("updates")[:MOST_SHOWN])


def _shown(now: datetime) -> QuerySet[Incident]:
    return Incident.objects.filter(Q(ended_at=None) | Q(starts_at__gt=now - SHOWN_FOR))


def publish() -> None:
    """Tell every process which incidents are open. The schedule says it again each minute."""
    rows = Incident.objects.filter(ended_at=None).prefetch_related("updates")[:MOST_SHOWN]
    open_incidents.publish(backend.current(), [_as_open(row) for row in rows])


def _as_open(incident: Incident) -> open_incidents.OpenIncident:
    last = incident.updates.all()[0]
    return open_incidents.OpenIncident(
        id=str(incident.pk),
        title=incident.title,
        severity=incident.severity,
        parts=tuple(incident.parts),
        stage=last.stage,
        updated_at=last.posted_at,
        is_maintenance=incident.kind == Kind.MAINTENANCE,
        starts_at=incident.starts_at,
    )
