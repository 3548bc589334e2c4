"""Alert settings: kinds, places and quiet hours of one organization. Spec: D166 · docs/decisions/0096"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from functools import lru_cache
from uuid import UUID
from zoneinfo import ZoneInfo, available_timezones

from django.db import transaction

from audit.actor import Actor
from audit.admin_log import record_admin
from audit.event_types import EventType
from audit.shipping.platforms.webhook import Webhook
from audit.shipping.validation import EndpointNotAllowed, checked_destination
from gateway.lib import clock
from gateway.lib.errors import Conflict, DomainError, Invalid
from gateway.lib.secrets import random_webhook_secret
from gateway.lib.sentences import sentence
from orgs.alert_terms import ALL_KINDS, SECRET_OVERLAP, AlertKind
from orgs.locking import lock_for_change
from orgs.models import AlertSettings, Organization, User
from orgs.roles import Role
from orgs.services.alert_secret_sealing import Secrets, seal_secrets, secrets_of

NO_WEBHOOK = sentence("Enter the address of the webhook first.")


@dataclass(frozen=True, slots=True)
class Changes:
    """None: stays as it is. `kinds`: those that are told. An empty `webhook_url` ends the webhook and its secret."""

    kinds: Collection[str] | None = None
    by_mail: bool | None = None
    webhook_url: str | None = None
    quiet_from: str | None = None  # HH:MM
    quiet_until: str | None = None
    time_zone: str | None = None


@dataclass(frozen=True, slots=True)
class Changed:
    """`secret`: a new one, which is shown once; empty if the change made none."""

    row: AlertSettings
    secret: str = field(default="", repr=False)


def settings_of(organization: Organization) -> AlertSettings:
    """The stored ones, or the defaults."""
    return AlertSettings.objects.filter(pk=organization.pk).first() or AlertSettings(organization=organization)


def settings_of_each(org_ids: Collection[UUID]) -> dict[UUID, AlertSettings]:
    """By organization, as `settings_of`. One statement."""
    stored = {row.pk: row for row in AlertSettings.objects.filter(pk__in=org_ids)}
    return {org_id: stored.get(org_id) or AlertSettings(organization_id=org_id) for org_id in org_ids}


def told_kinds(row: AlertSettings) -> list[AlertKind]:
    return [kind for kind in ALL_KINDS if kind.value not in row.muted_kinds]


@transaction.atomic
def change_settings(*, actor: User | Actor, organization: Organization, changes: Changes) -> Changed:
    """Raises: Invalid, EndpointNotAllowed, with the members of the API; NotFound, Forbidden for members."""
    organization = lock_for_change(organization, actor=actor, role=Role.ADMIN)
    row, before = settings_of(organization), _facts(settings_of(organization))
    _apply(row, changes)
    secret = _set_webhook(row, changes.webhook_url)
    after = _facts(row)
    changed = [name for name, value in after.items() if value != before[name]]
    if changed:
        row.save()
        _record(EventType.ALERT_SETTINGS_UPDATED, actor, organization, changed=changed)
    return Changed(row, secret)


@transaction.atomic
def rotate_secret(*, actor: User | Actor, organization: Organization) -> Changed:
    """The former secret signs beside the new one for SECRET_OVERLAP. Raises: Conflict; NotFound, Forbidden."""
    organization = lock_for_change(organization, actor=actor, role=Role.ADMIN)
    row = settings_of(organization)
    if not row.webhook_url:
        raise Conflict(NO_WEBHOOK)
    former = secrets_of(row)
    secret = random_webhook_secret()
    _store(row, Secrets(secret, "" if former is None else former.secret))
    row.previous_secret_ends_at = clock.now() + SECRET_OVERLAP
    row.save()
    _record(EventType.ALERT_SECRET_ROTATED, actor, organization)
    return Changed(row, secret)


def previous_secret_end(row: AlertSettings, now: datetime) -> datetime | None:
    """Until when the secret of before the last rotation signs too; None if it does not."""
    ends_at = row.previous_secret_ends_at
    return ends_at if ends_at is not None and now < ends_at else None


def quiet_end(row: AlertSettings, now: datetime) -> datetime | None:
    """The end of the quiet hours that `now` is in; None outside them."""
    if row.quiet_from == row.quiet_until:
        return None
    local = now.astimezone(ZoneInfo(row.time_zone))
    minute = local.hour * 60 + local.minute
    spans_midnight = row.quiet_from > row.quiet_until
    is_quiet = minute >= row.quiet_from or minute < row.quiet_until
    if not spans_midnight:
        is_quiet = row.quiet_from <= minute < row.quiet_until
    if not is_quiet:
        return None
    day = local.date() + timedelta(days=spans_midnight and minute >= row.quiet_from)
    # The wall clock's own time, whatever a change of the clocks does to the hours until then.
    return datetime.combine(day, _time(row.quiet_until), tzinfo=local.tzinfo).astimezone(now.tzinfo)


def as_clock(minute: int) -> str:
    """HH:MM"""
    return f"{_time(minute):%H:%M}"


def _time(minute: int) -> time:
    return time(minute // 60, minute % 60)


def _apply(row: AlertSettings, changes: Changes) -> None:
    """Raises: Invalid."""
    faults: dict[str, list[str]] = {}
    if changes.kinds is not None:
        known = {kind.value for kind in ALL_KINDS}
        if set(changes.kinds) - known:
            faults["kinds"] = [sentence("Choose from %(kinds)s.", kinds=", ".join(ALL_KINDS))]
        row.muted_kinds = sorted(known - set(changes.kinds))
    if changes.by_mail is not None:
        row.by_mail = changes.by_mail
    for name, member in (("quiet_from", "quietFrom"), ("quiet_until", "quietUntil")):
        typed = getattr(changes, name)
        if typed is None:
            continue
        if (minute := _minute(typed)) is None:
            faults[member] = [sentence("Enter a time like 22:00.")]
        else:
            setattr(row, name, minute)
    if changes.time_zone is not None:
        if changes.time_zone in time_zones():
            row.time_zone = changes.time_zone
        else:
            faults["timeZone"] = [sentence("Choose a time zone such as Europe/Berlin.")]
    if faults:
        raise Invalid(fields=faults)


# Suggestions; every zone of the tz database is accepted.
COMMON_ZONES = (
    *("UTC", "America/Los_Angeles", "America/Denver", "America/Chicago", "America/New_York", "America/Sao_Paulo"),
    *("Europe/London", "Europe/Berlin", "Europe/Athens", "Africa/Johannesburg", "Asia/Dubai", "Asia/Kolkata"),
    *("Asia/Singapore", "Asia/Tokyo", "Australia/Sydney", "Pacific/Auckland"),
)


@lru_cache(maxsize=1)
def time_zones() -> tuple[str, ...]:
    return tuple(sorted(available_timezones()))


def _minute(text: str) -> int | None:
    try:
        found = time.fromisoformat(text)
    except ValueError:
        return None
    return None if len(text) != len("HH:MM") else found.hour * 60 + found.minute


def _set_webhook(row: AlertSettings, typed: str | None) -> str:
    """Return a new secret for the first address. Raises: EndpointNotAllowed."""
    if typed is None or typed.strip() == row.webhook_url:
        return ""
    if not typed.strip():
        row.webhook_url, row.secret_key_id, row.secret_sealed, row.previous_secret_ends_at = "", "", b"", None
        return ""
    try:
        row.webhook_url = checked_destination(Webhook(), typed, {}).endpoint_url
    except DomainError as refusal:
        # The platform names its own field.
        raise EndpointNotAllowed(fields={"webhookUrl": [*(refusal.fields or {}).get("endpointUrl", [])]}) from None
    # Another address gets another secret: a former receiver could sign for it.
    secret = random_webhook_secret()
    _store(row, Secrets(secret))
    row.previous_secret_ends_at = None
    return secret


def _store(row: AlertSettings, secrets: Secrets) -> None:
    row.secret_key_id, row.secret_sealed = seal_secrets(secrets, row.organization_id)


def _facts(row: AlertSettings) -> dict[str, object]:
    names = ("muted_kinds", "by_mail", "webhook_url", "quiet_from", "quiet_until", "time_zone")
    return {name: getattr(row, name) for name in names}


def _record(event: EventType, actor: User | Actor, organization: Organization, **facts: object) -> None:
    record_admin(event, org_id=organization.pk, actor=actor.as_actor(), target=organization.as_target(), metadata=facts)
