"""An organization as large as a customer's: people, vendors with tools, agents, teams, calls and what waits."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import F
from msgspec.structs import asdict

from audit.call_record import CallRecord
from audit.models import RequestAuditEntry, StreamEra
from audit.usage.ready_days import make_ready
from audit.usage.rollup import roll_up
from credentials.credential_scope import CredentialScope
from gateway.lib import clock
from oauth_ext.models import AgentKey, Client, TrustedIssuer
from orgs.models import Membership, ServerAccess, Team, TeamMembership, User
from orgs.services.access_requests import create_request
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation
from orgs.services.known_tools import record_tools
from orgs.services.management_tokens import create_token
from tests.factories.cast import Cast, make_cast
from tests.factories.catalog_text import load_catalog
from tests.factories.destinations import webhook_of
from tests.factories.tenant import CATALOG, connect, make_tenant

CLOSED = "http://127.0.0.1:9/mcp"  # a port without a listener
DAYS = 30
_ROWS_AT_ONCE = 5_000
_STATUSES = (("success", ""), ("error", "vendor_timeout"), ("denied", "tool_not_allowed"))


@dataclass(frozen=True, kw_only=True)
class Size:
    members: int
    vendors: int
    tools: int  # of each vendor
    agents: int
    calls: int


CUSTOMER = Size(members=200, vendors=50, tools=40, agents=100, calls=100_000)
SMALL = Size(members=30, vendors=20, tools=6, agents=20, calls=60)
# Some of each: a page has the same words and buttons with every further row.
SOME = Size(members=3, vendors=8, tools=3, agents=2, calls=12)


@dataclass(frozen=True)
class Seeded:
    """`things` has an id for each variable of a page's route."""

    cast: Cast
    things: dict[str, str]


def seed(size: Size) -> Seeded:
    """The cast's first organization, grown to `size`."""
    cast = make_cast()
    owner = cast.user("owner")
    slugs = [f"vendor-{number:03}" for number in range(size.vendors)]
    load_catalog("".join(_catalog_text(slug) for slug in slugs), "bench")
    members = _add_members(cast, size.members)
    for slug in slugs:
        connect(cast.org, owner, slug)
        record_tools(organization=cast.org, vendor=slug, definitions=_definitions(slug, size.tools))
    tenant = make_tenant(cast.org, owner)
    _add_agents(cast, size.agents)
    teams = _add_teams(cast, members, slugs)
    _give_access(cast, members, slugs)
    _add_calls(cast, members, slugs, size)
    while roll_up():
        pass
    make_ready(longest_run_s=600)
    create_request(
        actor=cast.user("member"),
        organization=cast.org,
        vendor=slugs[-1],
        reason="For the night shift",
        connected_vendors=lambda: slugs,
    )
    invitation = create_invitation(actor=owner, organization=cast.org)
    named_key = connect(cast.org, owner, slugs[0], CredentialScope.NAMED_KEY, {"name": "Night key"})
    connect(cast.org, owner, slugs[0], CredentialScope.TEAM, {"team": teams[0]})
    connect(cast.org, owner, slugs[0], CredentialScope.SERVICE_CLIENT, {"service_client": tenant.client})
    destination = webhook_of(owner, cast.org, secret="some-signing-secret")
    made = create_token(actor=owner, organization=cast.org, name="Terraform", scope="read")
    trusted = TrustedIssuer.objects.create(
        organization=cast.org, issuer="https://acme.okta.com", algorithms=["RS256"], created_by=owner
    )
    return Seeded(
        cast,
        {
            "org_id": str(cast.org.id),
            "user_id": str(members[0].user_id),
            "team_id": str(teams[0].id),
            "client_id": tenant.client.client_id,
            "vendor": slugs[0],
            "tool": f"{slugs[0].replace('-', '_')}_tool_000",
            "key_id": str(named_key.id),
            "credential_id": str(named_key.id),
            "invitation_id": str(invitation.id),
            "destination_id": str(destination.id),
            "platform": "webhook",
            "token": str(token_of(invitation)),
            "token_id": str(made.row.id),
            "issuer_id": str(trusted.id),
        },
    )


def _catalog_text(slug: str) -> str:
    name = slug.replace("-", " ").title()
    return CATALOG.format(slug=slug, name=name, url=CLOSED, prefix=slug.replace("-", "_"), timeout_s=5)


def _definitions(slug: str, tools: int) -> dict[str, bytes]:
    names = [f"{slug.replace('-', '_')}_tool_{number:03}" for number in range(tools)]
    shape: dict[str, object] = {
        "type": "object",
        "properties": {"device": {"type": "string"}, "limit": {"type": "integer"}},
    }
    return {name: json.dumps(_definition(name, shape), sort_keys=True).encode() for name in names}


def _definition(name: str, shape: dict[str, object]) -> dict[str, object]:
    text = f"Does what {name} says, for one device or for all of them, and answers with a list of results."
    return {"annotations": {"readOnlyHint": True}, "description": text, "inputSchema": shape, "name": name}


def _add_members(cast: Cast, count: int) -> list[Membership]:
    users = [
        User(email=f"person{number:04}@example.com", email_verified=True, display_name=f"Person {number:04}")
        for number in range(count)
    ]
    User.objects.bulk_create(users)
    return Membership.objects.bulk_create(Membership(organization=cast.org, user=user, role="member") for user in users)


def _add_agents(cast: Cast, count: int) -> None:
    owner, now = cast.user("owner"), clock.now()
    agents = [
        Client(
            client_id=f"svc_agent{number:04}",
            client_secret="no one signs in with it",
            client_type=Client.CLIENT_CONFIDENTIAL,
            authorization_grant_type=Client.GRANT_CLIENT_CREDENTIALS,
            organization=cast.org,
            name=f"Agent {number:04}",
            created_by=owner,
            expires_at=now + timedelta(days=number + 1),
        )
        for number in range(count)
    ]
    Client.objects.bulk_create(agents)
    AgentKey.objects.bulk_create(
        AgentKey(client=agent, prefix=f"cak_{number:08}", secret_sha256=bytes([number % 256]) * 32, created_by=owner)
        for number, agent in enumerate(agents)
    )


def _add_teams(cast: Cast, members: list[Membership], slugs: list[str]) -> list[Team]:
    teams = Team.objects.bulk_create(Team(organization=cast.org, name=f"Team {number:02}") for number in range(10))
    TeamMembership.objects.bulk_create(
        TeamMembership(team=teams[number % len(teams)], membership=member) for number, member in enumerate(members)
    )
    ServerAccess.objects.bulk_create(
        ServerAccess(organization=cast.org, team=team, vendor=slug) for team in teams for slug in slugs[::5]
    )
    return teams


def _give_access(cast: Cast, members: list[Membership], slugs: list[str]) -> None:
    ServerAccess.objects.bulk_create(
        ServerAccess(organization=cast.org, membership=member, vendor=slug) for member in members for slug in slugs[::7]
    )


def _add_calls(cast: Cast, members: list[Membership], slugs: list[str], size: Size) -> None:
    # On a young PostgreSQL server these positions would lie in the future, and no roll-up would take the rows.
    StreamEra.objects.update(start=F("start") + size.calls)
    calls = _calls(cast, members, slugs, size)
    while rows := list(itertools.islice(calls, _ROWS_AT_ONCE)):
        RequestAuditEntry.objects.bulk_create(rows)


def _calls(cast: Cast, members: list[Membership], slugs: list[str], size: Size) -> Iterator[RequestAuditEntry]:
    chance, now = random.Random(7), clock.now().replace(microsecond=0)
    for number in range(size.calls):
        member, slug = chance.choice(members), chance.choice(slugs)
        status, code = chance.choices(_STATUSES, (94, 4, 2))[0]
        record = CallRecord(
            org_id=cast.org.id,
            user_id=str(member.user_id),
            user_label=member.user.name,
            vendor=slug,
            tool=f"{slug.replace('-', '_')}_tool_{chance.randrange(size.tools):03}",
            source="mcp",
            status=status,
            error_code=code,
            duration_ms=chance.randrange(400),
            request_id=f"r-{number}",
            timestamp=now - timedelta(days=DAYS) * (number / size.calls),
        )
        yield RequestAuditEntry(**asdict(record), position=number + 1)
