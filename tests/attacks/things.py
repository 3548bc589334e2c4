"""One of everything that a path can name, in the first organization."""

from __future__ import annotations

import json

from credentials.credential_scope import CredentialScope
from oauth_ext.models.trusted_issuer import TrustedIssuer
from orgs.services.access_requests import create_request
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import create_invitation
from orgs.services.known_tools import record_tools
from orgs.services.management_tokens import create_token
from orgs.services.teams import add_team_member, create_team
from tests.attacks.world import World
from tests.factories.destinations import webhook_of
from tests.factories.tenant import connect

SECRET = "s3cret-that-nobody-may-read-back"


def things(world: World, word: str = "") -> dict[str, str]:
    """Ids by the names of route variables. `word` stands in every free text; SECRET is in every credential."""
    org, owner, member = world.cast.org, world.cast.user("owner"), world.cast.user("member")
    team = create_team(actor=owner, organization=org, name=f"Night shift {word}")
    add_team_member(actor=owner, organization=org, team_id=team.id, user_id=member.id)
    invitation = create_invitation(actor=owner, organization=org)
    destination = webhook_of(owner, org, label=f"SIEM {word}", secret=SECRET)
    create = {"name": f"Night key {word}"}
    key = connect(org, owner, "fake", CredentialScope.NAMED_KEY, create, apiKey=SECRET)
    connect(org, owner, "fake", CredentialScope.TEAM, {"team": team}, apiKey=SECRET)
    connect(org, owner, "fake", CredentialScope.SERVICE_CLIENT, {"service_client": world.tenant.client}, apiKey=SECRET)
    connect(org, owner, "fake", apiKey=SECRET)
    waiting = create_request(
        actor=member, organization=org, vendor="fake", reason=f"Please {word}", connected_vendors=lambda: ["fake"]
    )
    tool = {"name": "fake_list", "description": f"Lists {word}", "inputSchema": {"type": "object"}}
    record_tools(organization=org, vendor="fake", definitions={"fake_list": json.dumps(tool).encode()})
    made = create_token(actor=owner, organization=org, name=f"Script {word}", scope="read")
    issuer = TrustedIssuer.objects.create(
        organization=org, issuer=f"https://idp.example.com/{made.row.id}", tenant=f"Tenant {word}"
    )
    return {
        "org_id": str(org.id),
        "user_id": str(member.id),
        "team_id": str(team.id),
        "client_id": world.tenant.client.client_id,
        "invitation_id": str(invitation.id),
        "key_id": str(key.id),
        "credential_id": str(key.id),
        "request_id": str(waiting.id),
        "destination_id": str(destination.pk),
        "issuer_id": str(issuer.pk),
        "vendor": "fake",
        "tool": "fake_list",
        "role": "member",
        "kind": "resources",
        "platform": "webhook",
        "token": token_of(invitation) or "",
        "token_id": str(made.row.id),
    }
