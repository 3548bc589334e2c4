"""Every column that the keys of CREDENTIAL_KEYS seal, found by the name of its neighbour with the key id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from django.apps import apps
from django.db.models import Count


def rows_by_key_id() -> Mapping[str, Mapping[str, int]]:
    """By key id, the rows of each table."""
    found: dict[str, Counter[str]] = {}
    for label, name in key_fields():
        rows = apps.get_model(label)._default_manager.exclude(**{name: ""})
        for key_id, number in rows.order_by(name).values_list(name).annotate(rows=Count("pk")):
            found.setdefault(key_id, Counter())[label] += number
    return found


def key_fields() -> Iterator[tuple[str, str]]:
    """(table, field) of each field that names a key of CREDENTIAL_KEYS: `key_id` or `…_key_id`."""
    for model in apps.get_models():
        for field in model._meta.concrete_fields:
            if not field.is_relation and (field.name == "key_id" or field.name.endswith("_key_id")):
                yield model._meta.label, field.name
