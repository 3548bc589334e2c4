"""The admin log page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from itertools import groupby
from typing import Any

from django.utils.translation import gettext_lazy, ngettext_lazy

from audit.actor_words import actor_words
from audit.change_sentences import in_words
from audit.csv_columns import ADMIN_CSV
from audit.event_types import EventType
from audit.filters import ADMIN_FILTERS
from audit.models import AdminAuditEntry
from audit.pages.facts import facts_of
from audit.pages.log_page import LogPage
from gateway.catalog import registry
from gateway.catalog.catalog import Catalog


def _noun_of(event_type: EventType) -> str:
    return event_type.partition(".")[0]


# (noun in words, its event types) pairs, for the filter.
EVENT_TYPES = [
    (noun.replace("_", " ").capitalize(), list(events))
    for noun, events in groupby(sorted(EventType, key=_noun_of), _noun_of)
]


class AdminLogPage(LogPage):
    """GET /orgs/:orgId/audit/admin. Spec: §4.10 · D81, D82, D147"""

    title = gettext_lazy("Changes")
    nav_route = "audit_pages:admin-log"
    template = "audit/admin_log.html"
    drawer = "audit/_change_drawer.html"
    api_route = "audit_api:admin-log"
    filters = {
        "actor_id": gettext_lazy("Who"),
        "event_type": gettext_lazy("Event"),
        "target_id": gettext_lazy("Target ID"),
    }
    subject = "actor_id"
    rows_found = ngettext_lazy("%(count)s change", "%(count)s changes", "number")
    more_rows = gettext_lazy("more than %(count)s changes")
    no_rows = gettext_lazy("No changes match these filters")
    log, parsers, columns = AdminAuditEntry, ADMIN_FILTERS, ADMIN_CSV

    @cached_property
    def catalog(self) -> Catalog:
        return registry.load()

    def labels(self) -> Mapping[str, str]:
        return {actor_id: actor_words(actor_id, label) for actor_id, label in super().labels().items()}

    def row(self, entry: AdminAuditEntry) -> dict[str, Any]:
        (change,) = in_words([entry], self.catalog)
        return {"parts": change.parts}

    def details(self, entry: AdminAuditEntry) -> dict[str, Any]:
        return {
            "facts": facts_of(entry),
            "same": self.url_with(target_id=entry.target_id) if entry.target_id else "",
        }

    def choices(self) -> dict[str, Any]:
        return {"event_types": EVENT_TYPES, "known_events": list(EventType)}
