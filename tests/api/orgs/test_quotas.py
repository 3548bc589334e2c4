"""The caps on rows of an organization: the last one goes in once, also when fifty ask together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.conf import LazySettings
from django.db.models import QuerySet
from django.utils import translation

from audit.models import LogDestination
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.services.credentials import store_credential
from gateway.catalog.registry import known_vendor
from gateway.lib.errors import DomainError
from gateway.lib.translated import translated
from oauth_ext.models import Client
from oauth_ext.services.service_clients import create_service_client, delete_service_client
from orgs.errors import LimitReached
from orgs.models import Invitation, Membership, Organization, Team, User
from orgs.roles import Role
from orgs.services.invitation_sealing import token_of
from orgs.services.invitations import accept_invitation, create_invitation, revoke_invitation
from orgs.services.members import add_member
from orgs.services.teams import create_team, delete_team
from tests.factories.api import Api
from tests.factories.cast import Cast, make_person
from tests.factories.catalog import load_vendors
from tests.factories.destinations import webhook_of
from tests.factories.races import at_once

CAP = 3
THREADS = 50
RAISE_IT = "An operator can raise it."


@dataclass(frozen=True)
class Kind:
    """A setting, the way to make one more row as `actor`, and the rows that count."""

    setting: str
    words: str
    make: Callable[[User, Organization, int], Any]
    rows: Callable[[Organization], QuerySet[Any]]


def make_key(actor: User, organization: Organization, number: int) -> Credential:
    return store_credential(
        actor=actor,
        organization=organization,
        vendor=known_vendor("acme"),
        scope=CredentialScope.NAMED_KEY,
        fields={"apiKey": "x"},
        name=f"key {number}",
    )


KINDS = {
    "service clients": Kind(
        "SERVICE_CLIENTS_PER_ORGANIZATION",
        "3 agents",
        lambda actor, org, number: create_service_client(actor=actor, organization=org, name=f"bot {number}"),
        lambda org: Client.objects.filter(organization=org),
    ),
    "teams": Kind(
        "TEAMS_PER_ORGANIZATION",
        "3 teams",
        lambda actor, org, number: create_team(actor=actor, organization=org, name=f"team {number}"),
        lambda org: Team.objects.filter(organization=org),
    ),
    "named keys": Kind(
        "NAMED_KEYS_PER_VENDOR",
        "3 named keys per vendor",
        make_key,
        lambda org: Credential.objects.filter(organization=org, scope=CredentialScope.NAMED_KEY.value),
    ),
    "open invitations": Kind(
        "INVITATIONS_PER_ORGANIZATION",
        "3 pending invitations",
        lambda actor, org, number: create_invitation(actor=actor, organization=org),
        lambda org: Invitation.objects.filter(organization=org),
    ),
    "destinations": Kind(
        "LOG_DESTINATIONS_PER_ORGANIZATION",
        "3 log destinations",
        lambda actor, org, number: webhook_of(actor, org, f"SIEM {number}"),
        lambda org: LogDestination.objects.filter(org_id=org.pk),
    ),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, settings: LazySettings) -> Kind:
    found = KINDS[request.param]
    setattr(settings, found.setting, CAP)
    return found


def test_fifty_at_once_make_no_row_too_many(committed_cast: Cast, kind: Kind) -> None:
    load_vendors("acme")
    owner, other_owner = committed_cast.user("owner"), committed_cast.user("other_owner")
    kind.make(owner, committed_cast.org, 999)
    results = at_once(
        *[lambda number=number: kind.make(owner, committed_cast.org, number) for number in range(THREADS)]  # type: ignore[misc]
    )
    refused = [result for result in results if isinstance(result, Exception)]
    assert len(refused) == THREADS - (CAP - 1)
    assert {(type(fault), str(fault)) for fault in refused} == {
        (LimitReached, f"This organization has reached its limit of {kind.words}. {RAISE_IT}")
    }
    assert kind.rows(committed_cast.org).count() == CAP
    kind.make(other_owner, committed_cast.other_org, 1)  # another organization has room of its own
    assert kind.rows(committed_cast.other_org).count() == 1


@pytest.mark.parametrize(
    ("kind", "german"),
    [
        ("agents", "Agenten"),
        ("invitation emails per day", "Einladungen per E-Mail am Tag"),
        ("log destinations", "Log-Ziele"),
        ("management tokens per member", "Verwaltungs-Token je Mitglied"),
        ("members", "Mitglieder"),
        ("named keys per vendor", "benannte Schlüssel je Anbieter"),
        ("pending invitations", "offene Einladungen"),
        ("teams", "Teams"),
        ("trusted identity providers", "vertrauenswürdige Identitätsanbieter"),
    ],
)
def test_a_german_page_names_the_kind_in_german(kind: str, german: str) -> None:
    with translation.override("de"):
        said = translated(LimitReached(kind, CAP).message)
    assert said == f"Diese Organisation hat ihr Limit erreicht (3 {german}). Ein Betreiber kann es erhöhen."


def test_the_numbers_of_a_deployment_that_sets_none(settings: LazySettings) -> None:
    assert (
        settings.SERVICE_CLIENTS_PER_ORGANIZATION,
        settings.TEAMS_PER_ORGANIZATION,
        settings.NAMED_KEYS_PER_VENDOR,
        settings.LOG_DESTINATIONS_PER_ORGANIZATION,
    ) == (200, 200, 100, 10)


def test_the_api_says_the_number(api: Api, settings: LazySettings) -> None:
    for name in ("SERVICE_CLIENTS_PER_ORGANIZATION", "TEAMS_PER_ORGANIZATION", "INVITATIONS_PER_ORGANIZATION"):
        setattr(settings, name, 1)
    for path, body in (("service-clients", {"name": "bot"}), ("teams", {"name": "night"}), ("invitations", {})):
        assert api.send("admin", "POST", f"/orgs/{{org}}/{path}", body).status_code == 201
        answer = api.send("admin", "POST", f"/orgs/{{org}}/{path}", {**body, "name": "another"} if body else body)
        assert (answer.status_code, answer.json()["error"]) == (409, "limit_reached")
        assert "1" in answer.json()["message"]


def test_pages_say_it_beside_the_form(cast: Cast, settings: LazySettings) -> None:
    settings.TEAMS_PER_ORGANIZATION = settings.SERVICE_CLIENTS_PER_ORGANIZATION = 1
    browser = cast.client("owner")
    create_team(actor=cast.user("owner"), organization=cast.org, name="night")
    create_service_client(actor=cast.user("owner"), organization=cast.org, name="bot")
    page = browser.post(f"/orgs/{cast.org.id}/teams", {"name": "day"})
    assert (page.status_code, "reached its limit of" in page.content.decode()) == (422, True)
    listing = browser.get(f"/orgs/{cast.org.id}/agents/new")
    form = {"name": "another", "access": "all", "expires_in_days": "30", "mcp_client": "curl"}
    page = browser.post(f"/orgs/{cast.org.id}/agents/new", {**form, "form_key": listing.context["form_key"]})
    assert (page.status_code, "reached its limit of" in page.content.decode()) == (422, True)


def test_what_goes_makes_room(cast: Cast, settings: LazySettings) -> None:
    settings.TEAMS_PER_ORGANIZATION = settings.SERVICE_CLIENTS_PER_ORGANIZATION = 1
    settings.INVITATIONS_PER_ORGANIZATION = 1
    owner, org = cast.user("owner"), cast.org
    for _ in range(2):
        team = create_team(actor=owner, organization=org, name="night")
        client = create_service_client(actor=owner, organization=org, name="bot").client
        invitation = create_invitation(actor=owner, organization=org)
        with pytest.raises(LimitReached):
            create_invitation(actor=owner, organization=org)
        delete_team(actor=owner, organization=org, team_id=team.id)
        delete_service_client(actor=owner, client=client)
        revoke_invitation(actor=owner, organization=org, invitation_id=invitation.id)


def test_a_full_organization_takes_nobody_and_the_link_keeps_its_use(cast: Cast, settings: LazySettings) -> None:
    settings.MEMBERS_PER_ORGANIZATION = 3
    invitation = create_invitation(actor=cast.user("owner"), organization=cast.org)
    token = token_of(invitation) or ""
    with pytest.raises(LimitReached):
        accept_invitation(user=cast.user("stranger"), token=token)
    with pytest.raises(DomainError, match="3 members"):
        add_member(
            actor=cast.user("owner").as_actor(), organization=cast.org, user=make_person("late"), role=Role.MEMBER
        )
    invitation.refresh_from_db()
    assert invitation.use_count == 0
    assert accept_invitation(user=cast.user("member"), token=token).already_member
    Membership.objects.filter(user=cast.user("member")).delete()
    assert not accept_invitation(user=cast.user("stranger"), token=token).already_member
