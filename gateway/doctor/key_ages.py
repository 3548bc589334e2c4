"""The keys there are, which of them are in use, and for how long. No value of a key leaves this module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings

from gateway.keys.models import KeyRecord
from gateway.keys.presence import fingerprint
from gateway.keys.sealed_columns import rows_by_key_id
from gateway.lib import clock
from gateway.lib.keyring import keyring
from oauth_ext.models import SigningKey

KINDS = MASTER, SECRET, SIGNING = KeyRecord.Kind.MASTER, KeyRecord.Kind.SECRET, KeyRecord.Kind.SIGNING
# The command that replaces a key of that kind, or the variable.
REMEDIES = {
    MASTER: "Make another with new_master_key.",
    SECRET: "Set another SECRET_KEY, and this one as SECRET_KEY_FALLBACKS.",
    SIGNING: "Run rotate_signing_key.",
}


@dataclass(frozen=True, slots=True)
class KeyAge:
    """`since`: when the key came into use, else when it was first seen; None before any process has noted it.

    `state`: current, waiting, former or missing. `rows`: what a master key seals.
    """

    kind: KeyRecord.Kind
    name: str
    state: str
    since: datetime | None
    rows: int | None = None
    wrapped_by: str = ""

    def days(self, now: datetime) -> int | None:
        return None if self.since is None else max(0, (now - self.since).days)

    def is_old(self, now: datetime) -> bool:
        return self.state == "current" and (self.days(now) or 0) > settings.KEY_AGE_WARNING_DAYS


def all_keys() -> list[KeyAge]:
    records: dict[str, dict[str, KeyRecord]] = {kind.value: {} for kind in KeyRecord.Kind}
    for record in KeyRecord.objects.order_by("first_seen_at", "name"):
        records[record.kind][record.name] = record
    signing = _configured_signing(records[SIGNING]) if settings.TOKEN_SIGNING_KEYS else _stored_signing(clock.now())
    return [*_master(records[MASTER]), *_secret(records[SECRET]), *signing]


def current_ages(now: datetime) -> Mapping[str, float]:
    """By kind, the seconds for which the current key has been in use; only what the database knows."""
    rows = KeyRecord.objects.filter(is_current=True).values_list("kind", "used_from")
    ages = {kind: (now - used_from).total_seconds() for kind, used_from in rows if used_from is not None}
    stored = SigningKey.objects.filter(signs_from__lte=now).order_by("-signs_from").first()
    if SIGNING.value not in ages and stored is not None:
        ages[SIGNING.value] = (now - stored.signs_from).total_seconds()
    return {kind: max(0.0, age) for kind, age in ages.items()}


def last_rotation(kind: KeyRecord.Kind, keys: list[KeyAge]) -> datetime | None:
    """When the current key took the place of another; None if it is the first that is known."""
    used = KeyRecord.objects.filter(kind=kind, used_from__isnull=False).order_by("-used_from")[:2]
    if kind == SIGNING and not settings.TOKEN_SIGNING_KEYS:
        has_former = any(key.kind == SIGNING and key.state == "former" for key in keys)
        return next((key.since for key in keys if key.kind == SIGNING and key.state == "current" and has_former), None)
    return used[0].used_from if len(used) > 1 else None


def _master(records: Mapping[str, KeyRecord]) -> Iterator[KeyAge]:
    ring, rows = keyring(), rows_by_key_id()
    current = next((name for name, record in records.items() if record.is_current), ring.current_id)
    for name in {**dict.fromkeys(ring.keys), **dict.fromkeys(sorted(rows))}:
        number = sum(rows.get(name, {}).values())
        if name not in ring.keys:
            state = "missing"
        elif name == current:
            state = "current"
        else:
            state = "waiting" if name == ring.current_id else "former"
        yield KeyAge(MASTER, name, state, _since(records.get(name)), number, settings.KEYS_WRAPPED_BY.get(name, ""))


def _secret(records: Mapping[str, KeyRecord]) -> Iterator[KeyAge]:
    name = fingerprint(settings.SECRET_KEY)
    yield KeyAge(SECRET, name, "current", _since(records.get(name)))
    for former in map(fingerprint, settings.SECRET_KEY_FALLBACKS):
        yield KeyAge(SECRET, former, "former", _since(records.get(former)))


def _configured_signing(records: Mapping[str, KeyRecord]) -> Iterator[KeyAge]:
    names = [entry.partition(":")[0].strip() for entry in settings.TOKEN_SIGNING_KEYS.split(",") if entry.strip()]
    for number, name in enumerate(names):
        yield KeyAge(SIGNING, name, "former" if number else "current", _since(records.get(name)))


def _stored_signing(now: datetime) -> Iterator[KeyAge]:
    state = "current"
    for row in SigningKey.objects.order_by("-signs_from"):
        if row.signs_from > now:
            yield KeyAge(SIGNING, row.kid, "waiting", row.signs_from)
        else:
            yield KeyAge(SIGNING, row.kid, state, row.signs_from)
            state = "former"


def _since(record: KeyRecord | None) -> datetime | None:
    return None if record is None else record.used_from or record.first_seen_at
