"""Keys: every one that a row needs is there, and how old the signing key is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from django.apps import apps
from django.conf import settings
from django.db.models import Count

from gateway.doctor.verdict import Finding, error, ok, warning
from gateway.lib import clock
from gateway.lib.keyring import keyring
from oauth_ext.jwt.keys import SigningKeysUnavailable, load_key_set
from oauth_ext.models import SigningKey

# Answers that are kept for a day; without their key a repeated request gets 409.
_SHORT_LIVED = {"web.IdempotencyRecord"}
OLD_DAYS = 365


def sealing_keys() -> Sequence[Finding]:
    """Any field named `key_id` or `…_key_id` names a key of CREDENTIAL_KEYS, so that no table is forgotten."""
    known = set(keyring().keys)
    return judged(rows_by_key_id(), known, current=keyring().current_id)


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


def rows_by_key_id() -> Mapping[str, Mapping[str, int]]:
    found: dict[str, Counter[str]] = {}
    for label, name in key_fields():
        rows = apps.get_model(label)._default_manager.exclude(**{name: ""})
        for key_id, number in rows.order_by(name).values_list(name).annotate(rows=Count("pk")):
            found.setdefault(key_id, Counter())[label] += number
    return found


def key_fields() -> Iterator[tuple[str, str]]:
    """(table, field) of each field that names a key of CREDENTIAL_KEYS."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if not field.is_relation and (field.name == "key_id" or field.name.endswith("_key_id")):
                yield model._meta.label, field.name


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
    return warning(f"{words} Run rotate_signing_key.") if days > OLD_DAYS else ok(words)
