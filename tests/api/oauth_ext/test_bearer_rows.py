"""The rights that one statement reads are those that the selectors find, for any people, teams and server access."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta

from credentials.models import Credential, OrganizationDataKey
from credentials.resolve import CredentialIndex
from credentials.sealing import wrapped_keys
from credentials.selectors import refs_by_vendor
from gateway.lib import clock
from oauth_ext.models import ServiceClientAllowlist, ServiceClientItemAllowlist, ServiceClientVendor
from oauth_ext.models.client import ToolMode
from oauth_ext.services.agent_keys import mint_agent_key
from orgs import selectors
from orgs.models import ItemAllowlist, Membership, Organization, ServerAccess, Team, TeamMembership, ToolAllowlist, User
from orgs.roles import Role
from proxy.caller_rows import organization_access, principal_in, principal_of
from tests.api.oauth_ext.conftest import Service, make_service
from tests.api.oauth_ext.flow import make_flow
from tests.factories.bearers import load_identity
from tests.factories.cast import Cast

VENDORS = ("acme", "globex", "initech")
ROUNDS = 12


def draw_rights(draw: random.Random, org: Organization, person: User) -> None:
    """Other teams, server access and a role for the person, and for everybody else in the organization."""
    Team.objects.filter(organization=org).delete()
    ServerAccess.objects.filter(organization=org).delete()
    Membership.objects.filter(organization=org, user=person).update(role=draw.choice(list(Role)).value)
    now = clock.now()
    teams = [
        # Equal times too: then the id decides about the order.
        Team.objects.create(organization=org, name=f"team {n}", created_at=now - timedelta(days=draw.randrange(3)))
        for n in range(5)
    ]
    for member in Membership.objects.filter(organization=org):
        for team in draw.sample(teams, draw.randrange(len(teams))):
            TeamMembership.objects.create(team=team, membership=member)
        for vendor in draw.sample(VENDORS, draw.randrange(3)):
            ServerAccess.objects.create(organization=org, membership=member, vendor=vendor, expires_at=end(draw, now))
    for team in teams:
        for vendor in draw.sample(VENDORS, draw.randrange(2)):
            ServerAccess.objects.create(organization=org, team=team, vendor=vendor, expires_at=end(draw, now))


def end(draw: random.Random, now: datetime) -> datetime | None:
    """None, a passed or a future end."""
    days = draw.choice((0, -1, 1))
    return now + timedelta(days=days) if days else None


def test_of_a_person(cast: Cast) -> None:
    member, draw = cast.user("member"), random.Random(1)
    token = make_flow(cast).tokens()["access_token"]
    # Rights in another organization are no rights here.
    other = Membership.objects.create(organization=cast.other_org, user=member, role=Role.OWNER.value)
    elsewhere = Team.objects.create(organization=cast.other_org, name="Elsewhere")
    TeamMembership.objects.create(team=elsewhere, membership=other)
    ServerAccess.objects.create(organization=cast.other_org, membership=other, vendor="umbrella")
    seen = set()
    for _ in range(ROUNDS):
        draw_rights(draw, cast.org, member)
        identity = load_identity(token)
        assert identity.person is not None
        principal = principal_in(identity, clock.now().timestamp())
        assert principal == principal_of(replace(identity, client=None, person=None))
        seen.add((principal.role, len(principal.team_ids), len(principal.granted_vendors or ())))
    assert len(seen) > ROUNDS / 2


def test_of_a_service_client(cast: Cast, service: Service) -> None:
    client, token = service.client, service.token()
    for restricted in (False, True):
        for listed in ((), ("acme",), ("acme", "globex")):
            client.restricted = restricted
            client.save(update_fields=["restricted"])
            ServiceClientVendor.objects.filter(client=client).delete()
            for vendor in listed:
                ServiceClientVendor.objects.create(client=client, vendor=vendor)
            ServiceClientVendor.objects.filter(vendor="globex").update(expires_at=clock.now() - timedelta(days=1))
            identity = load_identity(token)
            assert principal_in(identity, clock.now().timestamp()) == principal_of(replace(identity, client=None))


def test_of_a_service_client_with_lists_of_tools(cast: Cast, service: Service) -> None:
    client, token, odd = service.client, service.token(), 'quote " and \\ and ü'
    key = mint_agent_key(actor=cast.user("owner"), client=client).agent_key
    other = make_service(cast, name="other")
    ServiceClientAllowlist.objects.create(client=other.client, vendor="acme", tools=["x"])
    for lists in ({}, {"acme": [odd, "list"]}, {"acme": [], "globex": ["a"]}):
        for mode in ToolMode:
            client.tool_mode = mode
            client.save(update_fields=["tool_mode"])
            ServiceClientAllowlist.objects.filter(client=client).delete()
            for vendor, tools in lists.items():
                ServiceClientAllowlist.objects.create(client=client, vendor=vendor, tools=tools)
            for bearer in (token, key):
                identity = load_identity(bearer)
                principal = principal_in(identity, clock.now().timestamp())
                assert principal == principal_of(replace(identity, client=None))
                found = {vendor: sorted(tools) for vendor, tools in (principal.own_allowlists or {}).items()}
                assert found == {vendor: sorted(tools) for vendor, tools in lists.items()}
                assert principal.is_read_only is (mode is ToolMode.READ_ONLY)


def test_of_a_service_client_with_lists_of_items(cast: Cast, service: Service) -> None:
    client, token, odd = service.client, service.token(), 'test://quote " and \\ and ü/{id}'
    other = make_service(cast, name="other")
    ServiceClientItemAllowlist.objects.create(client=other.client, vendor="acme", kind="prompts", entries=["x"])
    for lists in ({}, {("acme", "resources"): [odd, "a:b"]}, {("acme", "resources"): [], ("globex", "prompts"): ["{"]}):
        client.lists_compactly = bool(lists)
        client.save(update_fields=["lists_compactly"])
        ServiceClientItemAllowlist.objects.filter(client=client).delete()
        for (vendor, kind), entries in lists.items():
            ServiceClientItemAllowlist.objects.create(client=client, vendor=vendor, kind=kind, entries=entries)
        identity = load_identity(token)
        principal = principal_in(identity, clock.now().timestamp())
        assert principal == principal_of(replace(identity, client=None))
        found = {key: sorted(items.entries) for key, items in (principal.own_item_lists or {}).items()}
        assert found == {key: sorted(entries) for key, entries in lists.items()}
        assert [items.templates for key, items in (principal.own_item_lists or {}).items() if key[1] == "prompts"] in (
            [],
            [()],
        )
        assert principal.lists_compactly is bool(lists)


def test_without_rows_a_service_client_may_nothing(cast: Cast, service: Service) -> None:
    identity = replace(load_identity(service.token()), client=None)
    principal = principal_in(identity, clock.now().timestamp())
    assert (principal.granted_vendors, principal.is_read_only) == (frozenset(), True)
    service.client.delete()
    assert principal_of(identity).granted_vendors == frozenset()
    assert principal_of(identity).is_read_only


def test_of_an_organization(cast: Cast) -> None:
    odd = 'quote " and \\ and ü and \u2028'
    cast.org.name = odd
    cast.org.save(update_fields=["name"])
    ToolAllowlist.objects.create(organization=cast.org, vendor="acme", role="member", tools=[odd, "list"])
    ToolAllowlist.objects.create(organization=cast.org, vendor="acme", role="admin", tools=[])
    ToolAllowlist.objects.create(organization=cast.other_org, vendor="acme", role="owner", tools=["x"])
    for org, role, kind in (
        (cast.org, "member", "resources"),
        (cast.org, "owner", "prompts"),
        (cast.other_org, "admin", "prompts"),
    ):
        ItemAllowlist.objects.create(organization=org, vendor="acme", role=role, kind=kind, entries=[odd, "a:{b}"])
    service = make_service(cast).client
    team = Team.objects.create(organization=cast.org, name="Ops")
    for number, holder in enumerate(
        (
            {"scope": "organization"},
            {"scope": "team", "team": team},
            {"scope": "named_key", "team": team, "name": "bound"},
            {"scope": "named_key", "name": "spare"},
            {"scope": "service_client", "service_client": service},
        )
    ):
        for vendor in ("globex", "acme"):
            sealed = bytes([number, 0, 255])
            Credential.objects.create(organization=cast.org, vendor=vendor, data_key_version=1, sealed=sealed, **holder)
    OrganizationDataKey.objects.create(organization=cast.org, version=1, key_id="test-1", wrapped_key=b"\x00\xff")
    found = organization_access(cast.org.id)
    assert (found.name, found.default_access_all) == (odd, cast.org.gives_access_by_default)
    assert found.allowlists == selectors.allowlists(cast.org.id)
    assert found.item_lists == selectors.item_lists(cast.org.id)
    assert set(found.item_lists) == {("acme", "member", "resources"), ("acme", "owner", "prompts")}
    expected = {vendor: CredentialIndex(refs) for vendor, refs in refs_by_vendor(cast.org.id).items()}
    assert found.credentials == expected
    assert set(expected) == {"acme", "globex"}
    assert found.wrapped_keys == wrapped_keys(cast.org.id) != ()
    assert organization_access(cast.other_org.id).credentials == {}
