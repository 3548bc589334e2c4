"""The admin log page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from django.db.models import QuerySet

from audit.admin_filters import AdminFilters
from audit.admin_selectors import known_actors, matching_admin_entries
from audit.event_types import EventType
from audit.models import AdminAuditEntry
from audit.pages.facts import facts_of
from audit.pages.log_page import LogPage
from audit.selectors import KnownUser


def _noun_of(event_type: EventType) -> str:
    return event_type.partition(".")[0]


# (noun in words, its event types) pairs, for the filter.
EVENT_TYPES = [
    (noun.replace("_", " ").capitalize(), list(events))
    for noun, events in groupby(sorted(EventType, key=_noun_of), _noun_of)
]


class AdminLogPage(LogPage):
    """GET /orgs/:orgId/audit/admin. Spec: §4.10 · D81, D82, D147"""

    title = "Admin log"
    nav_route = "audit_pages:admin-log"
    template = "audit/admin_log.html"
    api_route = "audit_api:admin-log"
    filters = {"actor_id": "Who", "event_type": "Event", "target_id": "Target ID"}
    subject = "actor_id"
    nouns = ("change", "changes")
    columns = {
        "actor": "the name of the one who made the change, at that time",
        "actor_id": "its id; system for background jobs",
        "target": "the name of the row that was changed, at that time",
        "target_id": "its id",
        "event_type": "the kind of change",
        "timestamp": "the time of the change in UTC",
        "metadata": "the details as JSON",
    }

    def known_subjects(self) -> Sequence[KnownUser]:
        return known_actors(self.organization.id)

    def matching(self, query: Mapping[str, str]) -> QuerySet[AdminAuditEntry]:
        return matching_admin_entries(self.organization.id, filters=AdminFilters.parse(query))

    def row(self, entry: AdminAuditEntry) -> dict[str, Any]:
        return {
            "facts": facts_of(entry),
            "same_target": self.url_with(target_id=entry.target_id) if entry.target_id else "",
            "around": self.around(entry.actor_id, entry.timestamp),
        }

    def choices(self) -> dict[str, Any]:
        return {"event_types": EVENT_TYPES, "known_events": list(EventType)}
