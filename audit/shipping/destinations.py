"""Destinations of one organization: stored, changed, deleted, replayed. Spec: §2, §4.13 · D95-D97

The callers hold the organization's lock in a transaction, which also decides who may do this.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models import Min, QuerySet

from audit.actor import Actor, Target
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.models import LogDestination, SentHour
from audit.shipping.config_sealing import config_of, seal_config
from audit.shipping.results import KEPT_FOR
from audit.shipping.validation import CheckedDestination, checked_destination, checked_platform, masked
from audit.shipping.waiting import columns_of, place_in
from audit.shipping_models import NAME_CHARACTERS
from audit.stream import FINAL_AFTER_S, Entry, Log, Place, end_of, final_rows
from gateway.lib import clock, ids
from gateway.lib.crypto import CryptoError
from gateway.lib.errors import Invalid
from gateway.lib.ids import NO_ID, first_log_id_at
from gateway.lib.rows import required_row
from gateway.lib.sentences import sentence
from gateway.lib.text import clean_name


@dataclass(frozen=True, slots=True)
class Changes:
    """None: stays as it is. In `config` a missing or masked value stays, and an empty one goes."""

    label: str | None = None
    endpoint_url: str | None = None
    config: Mapping[str, object] | None = None
    enabled: bool | None = None


def destinations_of(org_id: UUID) -> QuerySet[LogDestination]:
    """By label."""
    return LogDestination.objects.filter(org_id=org_id).order_by("label", "id")


def destination_of(org_id: UUID, destination_id: UUID, *, locked: bool = False) -> LogDestination:
    """`locked`: until the transaction ends. Raises: NotFound."""
    rows = LogDestination.objects.select_for_update() if locked else LogDestination.objects.all()
    return required_row(rows.filter(org_id=org_id, pk=destination_id))


def masked_config(destination: LogDestination) -> dict[str, str]:
    """Empty when the stored one does not open. Spec: D96"""
    try:
        return masked(checked_platform(destination.platform), config_of(destination))
    except CryptoError:
        return {}


def create(
    *, org_id: UUID, actor: Actor, label: str, platform: str, endpoint_url: str, config: Mapping[str, object]
) -> LogDestination:
    """It gets the records that are written from now on. Raises: Invalid, ConfigMissing, EndpointNotAllowed."""
    name = _checked_label(label)
    checked = checked_destination(checked_platform(platform), endpoint_url, config)
    destination = LogDestination(
        id=ids.new_id(),
        org_id=org_id,
        label=name,
        platform=checked.platform.value,
        **columns_of({log: end_of(log) for log in Log}),
    )
    _store(destination, checked)
    destination.save(force_insert=True)
    _record(EventType.LOG_SHIPPING_CREATED, destination, actor)
    return destination


def change(destination: LogDestination, changes: Changes, *, actor: Actor) -> None:
    """Its next attempt is made at once. Raises: Invalid, ConfigMissing, EndpointNotAllowed."""
    changed = []
    if changes.label is not None:
        destination.label = _checked_label(changes.label)
        changed.append("label")
    if changes.endpoint_url is not None or changes.config is not None:
        url = destination.endpoint_url if changes.endpoint_url is None else changes.endpoint_url
        values = _merged(destination, changes.config or {}, moves=_origin(url) != _origin(destination.endpoint_url))
        _store(destination, checked_destination(checked_platform(destination.platform), url, values))
        changed += [
            name for name, new in (("endpointUrl", changes.endpoint_url), ("config", changes.config)) if new is not None
        ]
    if changes.enabled is not None and changes.enabled != destination.enabled:
        destination.enabled = changes.enabled
        # Records of a long pause are too old, as after a long outage. The next attempt was due when it began.
        if changes.enabled and clock.now() - destination.next_attempt_at >= KEPT_FOR:
            destination.skip_before = clock.now() - KEPT_FOR
        changed.append("enabled")
    if not changed:
        return
    if changed != ["label"]:
        _start_anew(destination)
    destination.save()
    _record(EventType.LOG_SHIPPING_UPDATED, destination, actor, changed=changed, enabled=destination.enabled)


def delete(destination: LogDestination, *, actor: Actor) -> None:
    _record(EventType.LOG_SHIPPING_DELETED, destination, actor)
    destination.delete()


def delete_all_of(org_id: UUID) -> None:
    """For an organization that is being deleted."""
    LogDestination.objects.filter(org_id=org_id).delete()
    SentHour.objects.filter(org_id=org_id).delete()


def replay(destination: LogDestination, since: datetime, *, actor: Actor) -> None:
    """Delivers the records from `since` on again; a few before it may come along. Raises: Invalid."""
    if since > clock.now():
        raise Invalid(fields={"since": [sentence("Enter a time in the past.")]})
    places = {log: _place_before(destination.org_id, log, since) for log in Log}
    # A place is never moved forward: records may wait that are older than `since`.
    earlier = {log: min(place, place_in(destination, log)) for log, place in places.items() if place}
    for column, value in columns_of(earlier).items():
        setattr(destination, column, value)
    destination.skip_before = None
    _start_anew(destination)
    destination.save()
    _record(EventType.LOG_SHIPPING_REPLAYED, destination, actor, since=clock.rfc3339(since))


def _place_before(org_id: UUID, log: Log, since: datetime) -> Place | None:
    """None: no record is as young, and the place stays."""
    rows: QuerySet[Entry] = final_rows(log).filter(org_id=org_id, id__gte=first_log_id_at(since))
    first = rows.order_by("id").first()
    if first is None:
        return None
    # Rows become final in another order than they open: at the latest FINAL_AFTER_S later, when the sweep has come.
    latest = first_log_id_at(first.timestamp + timedelta(seconds=2 * FINAL_AFTER_S))
    lowest = rows.filter(id__lt=latest).aggregate(lowest=Min("position"))["lowest"]
    return Place(lowest, NO_ID)


def _store(destination: LogDestination, checked: CheckedDestination) -> None:
    destination.endpoint_url = checked.endpoint_url
    destination.config_key_id, destination.config_sealed = seal_config(
        checked.config, org_id=destination.org_id, destination_id=destination.pk
    )


def _start_anew(destination: LogDestination) -> None:
    """A delivery that is under way loses its claim."""
    destination.claim = destination.claimed_until = None
    destination.failures, destination.failing_since = 0, None
    destination.next_attempt_at = clock.now()


def _merged(destination: LogDestination, config: Mapping[str, object], *, moves: bool) -> dict[str, object]:
    """`moves`: the address leads to another host. Raises: Invalid."""
    try:
        stored = config_of(destination)
    except CryptoError:
        stored = {}
    platform = checked_platform(destination.platform)
    shown = masked(platform, stored)
    # A form sends back what it was shown.
    new = {name: value for name, value in config.items() if name not in stored or value != shown[name]}
    # A stored secret is never shown. Sent to another host, it would be shown there.
    kept = [each for each in platform.fields if each.secret and each.name in stored and each.name not in new]
    if moves and kept:
        text = sentence(
            "The address points to a different host: enter this value again, or leave it empty to remove it."
        )
        raise Invalid(fields={f"config.{each.name}": [text] for each in kept})
    return {**stored, **new}


def _origin(url: str) -> tuple[str, str | None, int | None]:
    try:
        parts = urlsplit(url.strip())
        return parts.scheme, parts.hostname, parts.port
    except ValueError:
        return url, None, None


def _checked_label(label: str) -> str:
    try:
        return clean_name(label, max_characters=NAME_CHARACTERS)
    except ValueError as fault:
        raise Invalid(fields={"label": [str(fault)]}) from None


def _record(event: EventType, destination: LogDestination, actor: Actor, **facts: object) -> None:
    facts = {"platform": destination.platform, **facts}
    target = Target(str(destination.pk), destination.label)
    record_admin(event, org_id=destination.org_id, actor=actor, target=target, metadata=facts)
