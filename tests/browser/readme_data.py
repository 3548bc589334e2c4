"""An organization of a month, with its people, agents and calls, for the pictures of the README.

`make` runs inside an installation that has no calls yet, on SQLite: tests/browser/readme_pictures.py
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta

import time_machine
from msgspec.structs import asdict

from audit.call_record import CallRecord
from audit.models import RequestAuditEntry
from gateway.lib import clock
from oauth_ext.models import Client
from oauth_ext.services.agent_keys import mint_agent_key
from oauth_ext.services.service_clients import create_service_client
from orgs.models import Membership, Organization, User
from orgs.roles import Role
from orgs.services.members import change_role
from orgs.services.organizations import create_organization
from orgs.services.teams import add_team_member, create_team

DAYS = 30
CALLS_A_DAY = 340  # at the end of the month; the first days have a third of it
WEEKEND = 0.2
AT_NIGHT = 0.35  # agents never sleep
COLLEAGUES = ("Priya Nair", "Jonas Weber", "Lucía Ortega")
AGENTS = ("Triage bot", "Patch reporter", "Onboarding assistant")
# Vendor, tool, weight, usual milliseconds.
TOOLS = (
    ("acme", "acme_list_devices", 30, 110),
    ("acme", "acme_get_device", 18, 70),
    ("acme", "acme_create_ticket", 9, 240),
    ("acme", "acme_search", 14, 160),
    ("huntress", "huntress_list_incident_reports", 10, 320),
    ("itglue", "itglue_search_documents", 8, 280),
    ("github", "github_search_issues", 7, 410),
    ("github", "github_create_issue", 4, 520),
)
OUTCOMES = (("success", ""), ("error", "tool_error"), ("error", "vendor_timeout"), ("denied", "tool_not_allowed"))
OUTCOME_WEIGHTS = (962, 22, 6, 10)
# Of the newest calls, counted from the last: a page of the log shows more than success.
NEWEST_OUTCOMES = {2: ("denied", "tool_not_allowed"), 4: ("error", "vendor_timeout")}


def make(email: str) -> str:
    """The organization of the signed-in person with this address. Returns its id and an agent's key as JSON."""
    owner, now = User.objects.get(email=email), clock.now()
    with time_machine.travel(now - timedelta(days=DAYS), tick=False):
        organization = create_organization(actor=owner, name="Northwind IT")
        people = [_colleague(organization, name) for name in COLLEAGUES]
    agents = []
    for days, name in zip((27, 12, 5), AGENTS, strict=True):
        with time_machine.travel(now - timedelta(days=days, hours=3), tick=False):
            agents.append(create_service_client(actor=owner, organization=organization, name=name).client)
            key = mint_agent_key(actor=owner, client=agents[-1]).agent_key
    with time_machine.travel(now - timedelta(days=2, hours=2), tick=False):
        change_role(actor=owner, organization=organization, user_id=people[0].id, role=Role.ADMIN)
    with time_machine.travel(now - timedelta(hours=5), tick=False):
        team = create_team(actor=people[0], organization=organization, name="Service desk")
        for person in people[1:]:
            add_team_member(actor=people[0], organization=organization, team_id=team.id, user_id=person.id)
    rows = _calls(organization, [owner, *people], agents, now)
    RequestAuditEntry.objects.bulk_create(rows, batch_size=500)
    return json.dumps({"org_id": str(organization.id), "agent_key": key})


def _colleague(organization: Organization, name: str) -> User:
    address = f"{name.split()[0].lower()}@northwind.example"
    person = User.objects.create(email=address, email_verified=True, display_name=name)
    Membership.objects.create(organization=organization, user=person, role=Role.MEMBER.value)
    return person


def _calls(
    organization: Organization, people: list[User], agents: list[Client], now: datetime
) -> Iterator[RequestAuditEntry]:
    chance = random.Random(20)  # the same picture each time
    callers = [(str(each.id), each.name, "mcp") for each in people]
    callers += [(f"svc:{organization.id}:{each.client_id}", each.name, "mcp") for each in agents]
    callers.append((*callers[-2][:2], "cli"))
    moments = sorted(_moments(chance, now))
    for position, moment in enumerate(moments, 1):
        subject, label, source = chance.choices(callers, (5, 4, 6, 3, 30, 14, 9, 8))[0]
        vendor, tool, _, usual_ms = chance.choices(TOOLS, [weight for _, _, weight, _ in TOOLS])[0]
        usual = chance.choices(OUTCOMES, OUTCOME_WEIGHTS)[0]
        status, code = NEWEST_OUTCOMES.get(len(moments) - position, usual)
        took_ms = 1 if status == "denied" else int(usual_ms * chance.lognormvariate(0, 0.45))
        record = CallRecord(
            timestamp=moment,
            org_id=organization.id,
            user_id=subject,
            user_label=label,
            vendor=vendor,
            tool=tool,
            source=source,
            status=status,
            error_code=code,
            duration_ms=took_ms,
            vendor_ms=max(took_ms - 4, 0),
            request_id=f"req-{position:06}",
        )
        yield RequestAuditEntry(**asdict(record), position=position)


def _moments(chance: random.Random, now: datetime) -> Iterator[datetime]:
    """Working hours have most of the calls, and weekends few."""
    for days in range(DAYS):
        day = clock.midnight((now - timedelta(days=days)).date())
        share = (1 - days / DAYS * 0.65) * (WEEKEND if day.weekday() >= 5 else chance.uniform(0.85, 1.1))
        for _ in range(int(CALLS_A_DAY * share)):
            hour = chance.uniform(0, 24) if chance.random() < AT_NIGHT else chance.gauss(13, 3)
            moment = day + timedelta(hours=min(max(hour, 0), 23.9))
            if moment < now - timedelta(seconds=40):
                yield moment
