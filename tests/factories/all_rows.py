"""Every row of every table, so that a test can say what was written and that nothing else was."""

from __future__ import annotations

import re

from django.apps import apps
from django.db.models import Model

# A session and its browser are noted as used by the request that is looked at.
SESSIONS = re.compile(r"django_session|orgs_browsersession|orgs_knownbrowser")
# Noted beside the calls, two seconds after the first of them.
NOTED_LATER = frozenset(("last_used_at",))


def rows() -> dict[str, list[str]]:
    """All rows but those of sessions, by model, without times of last use."""
    models = [each for each in apps.get_models() if not SESSIONS.search(each._meta.db_table)]
    return {each._meta.label: sorted(map(repr, each._base_manager.values_list(*_columns(each)))) for each in models}


def _columns(model: type[Model]) -> list[str]:
    return [field.attname for field in model._meta.concrete_fields if field.name not in NOTED_LATER]


def changed(before: dict[str, list[str]], after: dict[str, list[str]]) -> set[str]:
    """The models whose rows differ."""
    return {label for label in before if before[label] != after[label]}
