"""Permissions of every route and method of the API, tried by nine kinds of callers.

The table is the specification's; the routes come from the URL configuration. One that is missing here fails.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.db import transaction
from django.http import HttpResponse
from django.test import Client as Browser
from pytest_django import DjangoDbBlocker

from audit.models import AdminAuditEntry, LogDestination
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from gateway.lib import clock
from oauth_ext.models import AccessToken, AgentKey, Client, ServiceClientVendor, TrustedIssuer
from orgs.models import (
    Invitation,
    Membership,
    Organization,
    ServerAccess,
    Team,
    TeamMembership,
    ToolAllowlist,
)
from orgs.services.access_requests import create_request
from orgs.services.invitations import create_invitation
from tests.contracts.test_gates import NOT_GATED
from tests.contracts.url_walk import api_addresses
from tests.factories.cast import Cast, make_cast
from tests.factories.catalog import load_vendors
from tests.factories.credentials import make_setting
from tests.factories.destinations import webhook_of
from tests.factories.fixed_window import count_anew
from tests.factories.module_rows import rows_of_module
from tests.factories.tenant import Tenant, connect, make_tenant


@dataclass(frozen=True)
class Row:
    """The least role (None: anybody signed in), what success answers, and a body that succeeds.

    `to_owner`: what the organization's only owner is answered where that is not success. `query`, or `org_id` in the
    body, names the organization of a route whose path does not.
    """

    role: str | None
    success: int
    body: dict[str, Any] = field(default_factory=dict)
    to_owner: int | None = None
    query: str = ""
    # The answer to an admin or owner, for routes on which a member acts for themselves.
    to_admins: int | None = None


ORG = "/api/orgs/{org_id}"
MEMBER, TEAM, CLIENT = f"{ORG}/members/{{user_id}}", f"{ORG}/teams/{{team_id}}", f"{ORG}/service-clients/{{client_id}}"
KEYS = f"{ORG}/credentials/{{vendor}}/keys"
TOOLS, ITEMS = f"{ORG}/tool-access/{{vendor}}", f"{ORG}/item-access/{{vendor}}"
REQUESTS = f"{ORG}/access-requests"
REQUEST = f"{REQUESTS}/{{request_id}}"
SHIPPING = f"{ORG}/log-shipping"
DESTINATION = f"{SHIPPING}/{{destination_id}}"
WEBHOOK = {"label": "Other", "platform": "webhook", "endpointUrl": "https://logs.example.com/hook"}
FIELDS = {"apiKey": "some-key"}
ASKS = {"elicitation": True, "sampling": True, "roots": False}
ORG_ID = "{org_id}"  # in a body
TABLE: dict[tuple[str, str], Row] = {
    ("GET", "/api/vendors"): Row(None, 200),
    ("GET", "/api/profile"): Row(None, 200),
    ("PATCH", "/api/profile"): Row(None, 200, {"firstName": "Ana"}),
    ("GET", "/api/profile/tokens"): Row(None, 200),
    ("POST", "/api/profile/tokens"): Row(None, 404, {"org_id": "x", "name": "deploy", "scope": "read"}),
    ("DELETE", "/api/profile/tokens/{token_id}"): Row(None, 404),
    ("GET", "/api/profile/vendor-connections"): Row(None, 200),
    ("POST", "/api/profile/vendor-connections/{vendor}"): Row(None, 404, {"org_id": "x"}),
    ("DELETE", "/api/profile/vendor-connections/{vendor}"): Row(None, 404, query="?org_id=x"),
    ("GET", "/api/orgs"): Row(None, 200),
    ("POST", "/api/orgs"): Row(None, 201, {"name": "Initech"}),
    ("GET", ORG): Row("member", 200),
    ("PATCH", ORG): Row("owner", 200, {"name": "Acme 2"}),
    ("DELETE", ORG): Row("owner", 204),
    ("POST", f"{ORG}/redeem-code"): Row("owner", 422, {"code": "x"}),
    ("PATCH", f"{ORG}/settings"): Row("owner", 200, {"defaultServerAccess": "all"}),
    ("GET", f"{ORG}/members"): Row("member", 200),
    ("DELETE", MEMBER): Row("admin", 204),
    ("DELETE", f"{ORG}/membership"): Row("member", 204, to_owner=409),
    ("PATCH", f"{MEMBER}/role"): Row("owner", 200, {"role": "admin"}),
    ("PUT", f"{MEMBER}/ownership"): Row("owner", 200, {"stepDownTo": "admin"}),
    ("DELETE", f"{ORG}/ownership"): Row("owner", 409),
    ("GET", f"{ORG}/invitations"): Row("admin", 200),
    ("POST", f"{ORG}/invitations"): Row("admin", 201),
    ("POST", f"{ORG}/invitations/people"): Row("admin", 201, {"emails": ["new@example.com"]}),
    ("POST", f"{ORG}/invitations/{{invitation_id}}/send"): Row("admin", 200),
    ("DELETE", f"{ORG}/invitations/{{invitation_id}}"): Row("admin", 204),
    ("GET", f"{ORG}/server-access"): Row("admin", 200),
    ("GET", f"{MEMBER}/server-access"): Row("member", 200),
    ("PUT", f"{MEMBER}/server-access"): Row("admin", 200, {"vendors": ["acme"]}),
    ("PUT", f"{MEMBER}/server-access/{{vendor}}"): Row("admin", 200),
    ("DELETE", f"{MEMBER}/server-access/{{vendor}}"): Row("admin", 204),
    ("PUT", f"{TEAM}/server-access/{{vendor}}"): Row("admin", 200),
    ("DELETE", f"{TEAM}/server-access/{{vendor}}"): Row("admin", 204),
    ("GET", f"{ORG}/credentials"): Row("member", 200),
    ("POST", f"{ORG}/credentials/{{vendor}}"): Row("admin", 201, FIELDS, query="?anyway=true"),
    ("DELETE", f"{ORG}/credentials/{{vendor}}"): Row("admin", 204),
    ("GET", KEYS): Row("admin", 200),
    ("POST", KEYS): Row("admin", 201, {"name": "New", "fields": FIELDS}),
    ("POST", f"{KEYS}/{{key_id}}"): Row("admin", 200, FIELDS, query="?anyway=true"),
    ("PUT", f"{KEYS}/{{key_id}}"): Row("admin", 200, {"name": "Newer", "teamId": None}),
    ("DELETE", f"{KEYS}/{{key_id}}"): Row("admin", 204),
    ("GET", f"{TEAM}/credentials"): Row("admin", 200),
    ("POST", f"{TEAM}/credentials/{{vendor}}"): Row("admin", 201, FIELDS, query="?anyway=true"),
    ("DELETE", f"{TEAM}/credentials/{{vendor}}"): Row("admin", 204),
    ("GET", f"{CLIENT}/credentials"): Row("admin", 200),
    ("POST", f"{CLIENT}/credentials/{{vendor}}"): Row("admin", 201, FIELDS, query="?anyway=true"),
    ("DELETE", f"{CLIENT}/credentials/{{vendor}}"): Row("admin", 204),
    ("GET", f"{ORG}/vendor-connections"): Row("admin", 200),
    ("POST", f"{ORG}/vendor-connections/{{vendor}}"): Row("admin", 422),
    ("DELETE", f"{ORG}/vendor-connections/{{vendor}}"): Row("admin", 404, to_admins=404),
    ("GET", f"{ORG}/vendor-connections/{{vendor}}/rules"): Row("admin", 200),
    ("PUT", f"{ORG}/vendor-connections/{{vendor}}/rules"): Row("admin", 422, {"peopleMayConnect": False}),
    ("GET", f"{ORG}/vendor-questions/{{vendor}}"): Row("admin", 200),
    ("PUT", f"{ORG}/vendor-questions/{{vendor}}"): Row("admin", 200, ASKS),
    ("POST", f"{ORG}/teams"): Row("admin", 201, {"name": "New"}),
    ("GET", f"{ORG}/teams"): Row("admin", 200),
    ("PATCH", TEAM): Row("admin", 200, {"name": "Newer"}),
    ("DELETE", TEAM): Row("owner", 204),
    ("PUT", f"{TEAM}/members/{{user_id}}"): Row("admin", 200),
    ("DELETE", f"{TEAM}/members/{{user_id}}"): Row("admin", 204),
    ("POST", f"{ORG}/service-clients"): Row("admin", 201, {"name": "Robot"}),
    ("GET", f"{ORG}/service-clients"): Row("admin", 200),
    ("PATCH", CLIENT): Row("admin", 200, {"name": "Newer"}),
    ("DELETE", CLIENT): Row("admin", 204),
    ("POST", f"{CLIENT}/rotate-secret"): Row("admin", 201, {"overlap_hours": 1}),
    ("GET", f"{CLIENT}/tool-access"): Row("admin", 200),
    ("PUT", f"{CLIENT}/tool-access"): Row("owner", 200, {"mode": "read_only"}),
    ("GET", f"{CLIENT}/tool-access/{{vendor}}"): Row("admin", 200),
    ("PUT", f"{CLIENT}/tool-access/{{vendor}}"): Row("owner", 200, {"tools": ["a"]}),
    ("DELETE", f"{CLIENT}/tool-access/{{vendor}}"): Row("owner", 204),
    ("GET", f"{CLIENT}/item-access/{{vendor}}"): Row("admin", 200),
    ("PUT", f"{CLIENT}/item-access/{{vendor}}/{{kind}}"): Row("owner", 200, {"entries": ["a:b"]}),
    ("DELETE", f"{CLIENT}/item-access/{{vendor}}/{{kind}}"): Row("owner", 204),
    ("PUT", f"{CLIENT}/acting"): Row("owner", 200, {"acts_for_people": True}),
    ("GET", f"{ORG}/trusted-issuers"): Row("owner", 200),
    ("POST", f"{ORG}/trusted-issuers"): Row("owner", 400, {"issuer": "http://127.0.0.1:1"}),
    ("DELETE", f"{ORG}/trusted-issuers/{{issuer_id}}"): Row("owner", 204),
    ("POST", f"{CLIENT}/agent-key"): Row("admin", 201),
    ("DELETE", f"{CLIENT}/agent-key"): Row("admin", 204),
    ("GET", REQUESTS): Row("member", 200),
    ("POST", REQUESTS): Row("member", 201, {"vendor": "globex"}, to_admins=409),
    ("DELETE", REQUEST): Row("member", 204, to_admins=404),
    ("POST", f"{REQUEST}/approve"): Row("admin", 200),
    ("POST", f"{REQUEST}/decline"): Row("admin", 200),
    ("GET", TOOLS): Row("admin", 200),
    ("PUT", f"{TOOLS}/{{role}}"): Row("owner", 200, {"tools": ["a"]}),
    ("DELETE", f"{TOOLS}/{{role}}"): Row("owner", 204),
    ("GET", f"{TOOLS}/discover"): Row("admin", 502),
    ("GET", f"{TOOLS}/items"): Row("admin", 502),
    ("GET", ITEMS): Row("admin", 200),
    ("PUT", f"{ITEMS}/{{role}}/{{kind}}"): Row("owner", 200, {"entries": ["a:b"]}),
    ("DELETE", f"{ITEMS}/{{role}}/{{kind}}"): Row("owner", 204),
    ("GET", f"{ORG}/vendor-health"): Row("member", 200),
    ("GET", f"{ORG}/alerts"): Row("admin", 200),
    ("GET", f"{ORG}/alert-messages"): Row("admin", 200),
    ("GET", f"{ORG}/alert-settings"): Row("admin", 200),
    ("PATCH", f"{ORG}/alert-settings"): Row("admin", 200, {"kinds": ["vendor_down"]}),
    ("POST", f"{ORG}/alert-settings/rotate-secret"): Row("admin", 409),
    ("POST", f"{ORG}/alert-settings/test"): Row("admin", 200),
    ("GET", SHIPPING): Row("admin", 200),
    ("POST", SHIPPING): Row("admin", 201, WEBHOOK),
    ("GET", DESTINATION): Row("admin", 200),
    ("PATCH", DESTINATION): Row("admin", 200, {"label": "Another"}),
    ("DELETE", DESTINATION): Row("admin", 204),
    ("POST", f"{DESTINATION}/test"): Row("admin", 200),
    ("POST", f"{DESTINATION}/replay"): Row("admin", 200, {"since": "2026-01-31"}),
    ("GET", "/api/audit"): Row("admin", 200, query="?org_id={org_id}"),
    ("GET", "/api/audit/mine"): Row("member", 200, query="?org_id={org_id}"),
    ("GET", "/api/audit/admin"): Row("admin", 200, query="?org_id={org_id}"),
    ("GET", "/api/dashboard/usage"): Row("admin", 200, query="?org_id={org_id}"),
    ("GET", "/api/dashboard/savings"): Row("admin", 200, query="?org_id={org_id}"),
    ("GET", "/api/dashboard/vendors"): Row("admin", 200, query="?org_id={org_id}"),
    ("POST", "/api/billing/checkout"): Row("owner", 503, {"org_id": ORG_ID}),
    ("POST", "/api/billing/portal"): Row("owner", 503, {"org_id": ORG_ID}),
}
RANK = {"member": 0, "admin": 1, "owner": 2}
# The specification's "requires active subscription", and the entitlement of §4.8; further routes of a destination as
# those of the specification. Everything else works when lapsed.
NEEDS_PLAN = {
    ("POST", f"{ORG}/invitations"),
    ("POST", f"{ORG}/invitations/people"),
    ("POST", f"{ORG}/invitations/{{invitation_id}}/send"),
    ("POST", f"{ORG}/credentials/{{vendor}}"),
    ("POST", KEYS),
    ("POST", f"{KEYS}/{{key_id}}"),
    ("POST", f"{ORG}/vendor-connections/{{vendor}}"),
    ("POST", f"{ORG}/teams"),
    ("POST", f"{CLIENT}/agent-key"),
    ("GET", SHIPPING),
    ("POST", SHIPPING),
    ("GET", DESTINATION),
    ("PATCH", DESTINATION),  # all but a pause
    ("POST", f"{DESTINATION}/test"),
    ("POST", f"{DESTINATION}/replay"),
    ("GET", "/api/audit"),
    ("GET", "/api/audit/mine"),
    ("GET", "/api/audit/admin"),
    ("GET", "/api/dashboard/usage"),
    ("GET", "/api/dashboard/savings"),
    ("GET", "/api/dashboard/vendors"),
}
_addresses = itertools.count(1)


def routes() -> set[tuple[str, str]]:
    return {
        (method, address.template)
        for address in api_addresses()
        if address.route not in NOT_GATED
        for method in address.view.gates
    }


def test_the_table_names_every_route_and_no_other() -> None:
    assert set(TABLE) == routes()


@dataclass
class World:
    """Both organizations with one of everything that a path can name."""

    cast: Cast
    tenant: Tenant
    ids: dict[str, str]
    jwt: str

    def send(self, who: str, method: str, path: str, body: dict[str, Any]) -> HttpResponse:
        """As one of the nine."""
        headers = {}
        browser = Browser()
        if who in {"service JWT", "expired JWT"}:
            headers["Authorization"] = f"Bearer {self.jwt}"
        elif who == "agent key":
            headers["Authorization"] = f"Bearer {self.tenant.agent_key}"
        elif who != "anonymous":
            browser = self.cast.client(who)
        if who == "expired JWT":
            AccessToken.objects.update(expires=clock.now())
        data = json.dumps(self.filled(body)) if body else ""
        # The anonymous share one window per address, and this file alone would fill it.
        address = f"10.1.{next(_addresses) // 250 % 250}.{next(_addresses) % 250}"
        return browser.generic(  # type: ignore[return-value]
            method, path.format(**self.ids), data, content_type="application/json", headers=headers, REMOTE_ADDR=address
        )

    def filled(self, body: dict[str, Any]) -> dict[str, Any]:
        """A body of the table, with the ids that it names."""
        return {name: self.ids["org_id"] if value == ORG_ID else value for name, value in body.items()}


@pytest.fixture(scope="module")
def world_of_module(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[World]:
    with rows_of_module(django_db_blocker, _make_world) as made:
        yield made


@pytest.fixture
def world(db: None, world_of_module: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The same people for all tests of a module, and windows of its own for each test."""
    count_anew(monkeypatch)
    return deepcopy(world_of_module)


def _make_world() -> World:
    cast = make_cast()
    load_vendors("acme", "globex")
    setting = make_setting(cast)
    owner = cast.user("owner")
    tenant = make_tenant(cast.org, owner)
    removed = Membership.objects.create(organization=cast.org, user=cast.user("stranger"), role="admin")
    cast.people["removed member"] = cast.user("stranger")
    removed.delete()
    for vendor in ("acme", "globex"):
        connect(cast.org, owner, vendor, apiKey="key")
    key = setting.store(CredentialScope.NAMED_KEY)
    setting.store(CredentialScope.TEAM)
    setting.store(CredentialScope.SERVICE_CLIENT, service_client=tenant.client)
    invitation = create_invitation(actor=owner, organization=cast.org, email=f"{uuid4().hex}@example.com")
    waiting = create_request(
        actor=cast.user("member"), organization=cast.org, vendor="acme", connected_vendors=lambda: ["acme"]
    )
    trusted = TrustedIssuer.objects.create(organization=cast.org, issuer="https://idp.example")
    form = {
        "grant_type": "client_credentials",
        "client_id": tenant.client.client_id,
        "client_secret": tenant.client_secret,
        "scope": "mcp:all",
    }
    token = Browser().post("/oauth/token", urlencode(form), content_type="application/x-www-form-urlencoded")
    ids = {
        "org_id": str(cast.org.id),
        "user_id": str(cast.user("member").id),
        "team_id": str(setting.team.id),
        "client_id": tenant.client.client_id,
        "invitation_id": str(invitation.id),
        "key_id": str(key.id),
        "request_id": str(waiting.id),
        "token_id": str(cast.org.id),
        "issuer_id": str(trusted.pk),
        "destination_id": str(destination_in_a_forbidden_network(cast).pk),
        "vendor": "acme",
        "role": "member",
        "kind": "resources",
    }
    return World(cast, tenant, ids, token.json()["access_token"])


def destination_in_a_forbidden_network(cast: Cast) -> LogDestination:
    """A test record to it is refused without a question to the network."""
    made = webhook_of(cast.user("owner"), cast.org)
    LogDestination.objects.filter(pk=made.pk).update(endpoint_url="https://169.254.169.254/hook")
    return made


def expected(row: Row, who: str) -> int:
    """The status that the caller gets."""
    if who in {"anonymous", "service JWT", "agent key", "expired JWT"}:
        return 401
    if row.role is None:
        return row.success
    if who in {"other_owner", "removed member"}:
        return 404
    if who in {"admin", "owner"} and row.to_admins is not None:
        return row.to_admins
    if who == "owner" and row.to_owner is not None:
        return row.to_owner
    return row.success if RANK[who] >= RANK[row.role] else 403


def undone(work: Callable[[], HttpResponse]) -> HttpResponse:
    """The answer to `work`, whose effects are rolled back."""
    point = transaction.savepoint()
    try:
        return work()
    finally:
        transaction.savepoint_rollback(point)


CALLERS = (
    "anonymous",
    "member",
    "admin",
    "owner",
    "other_owner",
    "removed member",
    "service JWT",
    "agent key",
    "expired JWT",
)


def cases(*, naming: tuple[str, ...] = ()) -> list[Any]:
    """Rows as parameters; `naming` keeps those whose path names one of these."""
    return [
        pytest.param(method, path, row, id=f"{method} {path.removeprefix('/api')}")
        for (method, path), row in TABLE.items()
        if not naming or any(f"{{{name}}}" in path for name in naming)
    ]


@pytest.mark.parametrize(("method", "path", "row"), cases())
def test_every_caller_of_every_route(world: World, method: str, path: str, row: Row) -> None:
    found = {who: undone(lambda who=who: world.send(who, method, path + row.query, row.body)) for who in CALLERS}  # type: ignore[misc]
    assert {who: answer.status_code for who, answer in found.items()} == {who: expected(row, who) for who in CALLERS}
    for who in CALLERS:
        answer = found[who]
        assert answer["Cache-Control"] == "no-store"
        # Past the gate, a 404 is counted like every answer.
        is_past_gate = row.role is None or (row.to_admins is not None and who in {"admin", "owner"})
        assert ("RateLimit" in answer) == (
            answer.status_code != 401 and (is_past_gate or answer.status_code not in {403, 404})
        )
        if answer.status_code == 401:
            assert json.loads(answer.content)["error"] == "unauthenticated"


@pytest.mark.parametrize(("method", "path", "row"), cases())
@pytest.mark.usefixtures("lapsed")
def test_what_a_lapsed_plan_stops(world: World, method: str, path: str, row: Row) -> None:
    answer = undone(lambda: world.send("owner", method, path + row.query, row.body))
    if (method, path) in NEEDS_PLAN:
        assert (answer.status_code, json.loads(answer.content)["error"]) == (402, "subscription_required")
    else:
        assert answer.status_code == expected(row, "owner")


def tenant_rows() -> dict[str, list[dict[str, Any]]]:
    """Every row that a tenant has, as it is stored."""
    models = (
        Organization,
        Membership,
        Invitation,
        Team,
        TeamMembership,
        ServerAccess,
        ToolAllowlist,
        Credential,
        Client,
        AgentKey,
        ServiceClientVendor,
        AdminAuditEntry,
        LogDestination,
        TrustedIssuer,
    )
    return {model.__name__: list(model._default_manager.order_by("pk").values()) for model in models}


OWN_IDS = ("user_id", "team_id", "client_id", "invitation_id", "key_id", "destination_id", "issuer_id")


@pytest.mark.parametrize(("method", "path", "row"), cases(naming=OWN_IDS))
def test_ids_of_another_organization_lead_nowhere(world: World, method: str, path: str, row: Row) -> None:
    """The other organization's owner puts our ids under their own organization."""
    world.ids["org_id"] = str(world.cast.other_org.id)
    before = tenant_rows()
    answer = world.send("other_owner", method, path, row.body)
    assert (answer.status_code, json.loads(answer.content)["error"]) == (404, "not_found")
    assert tenant_rows() == before
