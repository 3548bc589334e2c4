"""Destinations of log shipping, made as a person makes them."""

from __future__ import annotations

from audit.models import LogDestination
from orgs.models import Organization, User
from orgs.services.log_destinations import create_destination

URL = "https://logs.example.com/hook"


def webhook_of(
    actor: User, organization: Organization, label: str = "SIEM", url: str = URL, **config: object
) -> LogDestination:
    """A webhook; nothing is sent to it."""
    return create_destination(
        actor=actor, organization=organization, label=label, platform="webhook", endpoint_url=url, config=config
    )
