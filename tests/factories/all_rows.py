"""Every row of every table, so that a test can say what was written and that nothing else was."""

from __future__ import annotations

import re

from django.apps import apps

# A session is noted as used by the request that is looked at.
SESSIONS = re.compile(r"django_session|orgs_browsersession")


def rows() -> dict[str, list[str]]:
    """All rows but those of sessions, by model."""
    models = [each for each in apps.get_models() if not SESSIONS.search(each._meta.db_table)]
    return {each._meta.label: sorted(map(repr, each._base_manager.values_list())) for each in models}


def changed(before: dict[str, list[str]], after: dict[str, list[str]]) -> set[str]:
    """The models whose rows differ."""
    return {label for label in before if before[label] != after[label]}
