"""The alerts that go on in an organization, in words."""

from __future__ import annotations

from orgs.models import Organization
from proxy.control_plane.alerts.listing import in_words_of, open_alerts_of

SHOWN = 20


def open_alerts(organization: Organization) -> list[str]:
    """The newest first."""
    return [in_words_of(alert) for alert in open_alerts_of(organization)[:SHOWN]]
