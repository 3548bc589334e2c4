"""Keys: every one that a row needs is there, every process has the current one, and none is too old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from django.conf import settings

from gateway.doctor.key_ages import MASTER, REMEDIES, SECRET, SIGNING, KeyAge, all_keys
from gateway.doctor.verdict import Finding, error, ok, warning
from gateway.keys.current import sealing_keys as keys_in_use
from gateway.keys.holders import holders_without, led_by_another_key
from gateway.keys.sealed_columns import rows_by_key_id
from gateway.lib import clock
from gateway.lib.keyring import keyring
from oauth_ext.jwt.keys import SigningKeysUnavailable, load_key_set
from oauth_ext.models import SigningKey

# Answers that are kept for a day; without their key a repeated request gets 409.
_SHORT_LIVED = {"web.IdempotencyRecord"}
# Sessions without a new request, forms and codes that a former SECRET_KEY signed have ended by then.
SECRET_OVERLAP = timedelta(hours=12)


def sealing_keys() -> Sequence[Finding]:
    known = set(keyring().keys)
    return judged(rows_by_key_id(), known, current=keys_in_use().current_id)


def judged(rows: Mapping[str, Mapping[str, int]], known: set[str], *, current: str) -> Sequence[Finding]:
    """`rows`: by key id, the rows of each table."""
    found = []
    for key_id in sorted(set(rows) - known):
        tables = ", ".join(f"{number} of {name}" for name, number in sorted(rows[key_id].items()))
        say = warning if set(rows[key_id]) <= _SHORT_LIVED else error
        found.append(say(f"CREDENTIAL_KEYS lacks {key_id}, which seals rows that do not open: {tables}."))
    if found:
        return found
    others = sum(sum(tables.values()) for key_id, tables in rows.items() if key_id != current)
    left = f"; {others} rows wait for rotate_master_key" if others else ""
    return [ok(f"Every key that a row needs is in CREDENTIAL_KEYS; {current} is the current one{left}.")]


def signing_keys() -> Sequence[Finding]:
    if not settings.TOKEN_SIGNING_KEYS and not SigningKey.objects.exists():
        return [ok("The first access token makes the first signing key.")]
    try:
        kid = load_key_set(max_age_s=0).signer.kid
    except SigningKeysUnavailable:
        return [error("CREDENTIAL_KEYS opens none of the stored signing keys: no access token is given or accepted.")]
    if settings.TOKEN_SIGNING_KEYS:
        return [ok(f"{kid} of TOKEN_SIGNING_KEYS signs access tokens.")]
    row = SigningKey.objects.filter(kid=kid).only("signs_from").first()
    return [judged_age(kid, 0 if row is None else (clock.now() - row.signs_from).days)]


def judged_age(kid: str, days: int) -> Finding:
    words = f"{kid} has been signing access tokens for {days} days."
    return warning(f"{words} Run rotate_signing_key.") if days > settings.KEY_AGE_WARNING_DAYS else ok(words)


def key_ages() -> Sequence[Finding]:
    now, keys = clock.now(), all_keys()
    old = [key for key in keys if key.kind != SIGNING and key.is_old(now)]
    lingering = _lingering_secrets(keys, now)
    if not old and not lingering:
        return [ok(f"No master key and no SECRET_KEY is older than {settings.KEY_AGE_WARNING_DAYS} days.")]
    return [*lingering, *_too_old(old, now)]


def _lingering_secrets(keys: Sequence[KeyAge], now: datetime) -> Sequence[Finding]:
    """Former values that are accepted though the current one has been in use for longer than SECRET_OVERLAP."""
    secrets = [key for key in keys if key.kind == SECRET]
    since = next((key.since for key in secrets if key.state == "current"), None)
    former = sum(key.state == "former" for key in secrets)
    if not former or since is None or now - since <= SECRET_OVERLAP:
        return []
    return [
        warning(
            f"SECRET_KEY_FALLBACKS still accepts {former} former value{'s' if former > 1 else ''}; SECRET_KEY has been"
            f" in use since {since:%Y-%m-%d %H:%M} UTC. Remove what is older."
        )
    ]


def _too_old(old: Sequence[KeyAge], now: datetime) -> Sequence[Finding]:
    return [
        warning(
            f"{f'The master key {key.name}' if key.kind == MASTER else 'SECRET_KEY'} has been in use for"
            f" {key.days(now)} days. {REMEDIES[key.kind]}"
        )
        for key in old
    ]


def key_holders() -> Sequence[Finding]:
    """All running processes open with the key that seals, and agree which one is the first, which is to seal next."""
    ring, current, now = keyring(), keys_in_use().current_id, clock.now()
    found = []
    if lacking := holders_without(current, now):
        found.append(error(f"The master key {current} seals, and these processes lack it: {', '.join(lacking)}."))
    behind = holders_without(ring.current_id, now)
    if current != ring.current_id and behind:
        found.append(
            warning(f"{ring.current_id} seals once all processes have it. Start these with it: {', '.join(behind)}.")
        )
    if reordered := [name for name in led_by_another_key(ring.current_id, now) if name not in {*lacking, *behind}]:
        found.append(
            warning(
                f"CREDENTIAL_KEYS begins with {ring.current_id} here and with another key in these processes:"
                f" {', '.join(reordered)}. {current} seals until it begins with the same key everywhere."
            )
        )
    plain = [name for name, service in settings.KEYS_WRAPPED_BY.items() if not service]
    if plain and len(plain) < len(settings.KEYS_WRAPPED_BY):
        found.append(warning(f"CREDENTIAL_KEYS has {', '.join(plain)} as it is, beside wrapped keys. Rotate it out."))
    return found or [ok(f"Every running process has the master key {current}.")]
