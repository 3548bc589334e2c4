"""Access requests over the API: who asks, who decides, and that each request is decided once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from audit.models import AdminAuditEntry
from credentials.models import Credential
from credentials.services.credentials import delete_credential
from gateway.lib import clock
from orgs.models import AccessRequest, Membership, ServerAccess
from orgs.roles import Role
from orgs.services import members, organizations, server_access, teams
from orgs.services.access_requests import approve_request, create_request, decline_request
from orgs.services.open_requests import remove_old_decisions
from tests.factories.api import Api
from tests.factories.catalog import load_vendors
from tests.factories.races import refusals_at_once
from tests.factories.tenant import connect

PATH = "/orgs/{org}/access-requests"
OTHER = "/orgs/{other}/access-requests"


@pytest.fixture
def asked(api: Api, vendors: None) -> str:
    """The id of the member's request for `acme`. Both vendors are connected, in both organizations."""
    return prepare(api)


def prepare(api: Api) -> str:
    for organization, owner in ((api.cast.org, "owner"), (api.cast.other_org, "other_owner")):
        for vendor in ("acme", "globex"):
            connect(organization, api.cast.user(owner), vendor, apiKey="key")
    return str(ask(api, "acme").json()["id"])


def ask(api: Api, vendor: str, who: str = "member", **body: str) -> Any:
    return api.send(who, "POST", PATH, {"vendor": vendor, **body})


def test_a_member_asks_and_sees_the_answer(api: Api, asked: str) -> None:
    (waiting,) = api.get("member", PATH)
    assert (waiting["id"], waiting["status"], waiting["vendor"]) == (asked, "waiting", "acme")
    assert api.get("admin", PATH) == [waiting]
    assert api.get("other_owner", OTHER) == []
    declined = api.send("admin", "POST", f"{PATH}/{asked}/decline", {"answer": "Use globex"}).json()
    assert (declined["status"], declined["answer"]) == ("declined", "Use globex")
    assert api.get("member", PATH) == [declined]
    assert not ServerAccess.objects.exists()
    again = ask(api, "acme").json()
    assert [row["id"] for row in api.get("member", PATH)] == [again["id"]]
    assert api.send("member", "DELETE", f"{PATH}/{again['id']}").status_code == 204
    assert api.get("member", PATH) == []
    assert api.events()[-4:] == [f"access_request.{each}" for each in ("created", "declined", "created", "withdrawn")]


@pytest.mark.parametrize("vendor", ["acme", "globex", "nowhere"])
def test_a_request_that_makes_no_sense_is_refused(api: Api, asked: str, vendor: str) -> None:
    Credential.objects.filter(organization=api.cast.org, vendor="globex").delete()
    expected = {
        "acme": (409, "access_request_open"),
        "globex": (409, "vendor_not_connected"),
        "nowhere": (404, "not_found"),
    }
    assert api.refused("member", "POST", PATH, {"vendor": vendor}) == expected[vendor]
    if vendor == "acme":
        assert api.refused("admin", "POST", PATH, {"vendor": vendor}) == (409, "has_access")
    assert AccessRequest.objects.count() == 1


@pytest.mark.parametrize("reason", [1, "x" * 501, "a\u202eb"])
def test_a_reason_is_short_plain_text(api: Api, asked: str, reason: object) -> None:
    assert api.faults("member", "POST", PATH, {"vendor": "globex", "reason": reason}) == {"reason"}
    assert AccessRequest.objects.count() == 1


@pytest.mark.parametrize("end", ["2020-01-31", "soon", 1, "9999-12-31T23:59:59-14:00", "2999-01-01"])
@pytest.mark.parametrize("route", ["approve", "member"])
def test_an_end_lies_ahead(api: Api, asked: str, end: object, route: str) -> None:
    member = f"/orgs/{{org}}/members/{api.cast.user('member').id}/server-access/acme"
    method, path = ("POST", f"{PATH}/{asked}/approve") if route == "approve" else ("PUT", member)
    before = len(api.events())
    assert api.faults("admin", method, path, {"expiresAt": end}) == {"expiresAt"}
    assert len(api.events()) == before
    assert not ServerAccess.objects.exists()
    assert AccessRequest.objects.get().state == "waiting"


def test_the_end_of_access_can_be_moved_and_lifted(api: Api, asked: str) -> None:
    path = f"/orgs/{{org}}/members/{api.cast.user('member').id}/server-access/acme"
    end = clock.rfc3339(clock.now() + timedelta(hours=1))
    for body, shown in (({"expiresAt": end}, end), ({"expiresAt": end}, end), ({}, None)):
        assert api.send("admin", "PUT", path, body).json()["expiresAt"] == shown
        assert api.get("admin", "/orgs/{org}/server-access")[0]["expiresAt"] == shown
    assert api.events().count("server_access.granted") == 2


def test_other_peoples_requests_are_out_of_reach(api: Api, asked: str) -> None:
    for who, path in (("other_owner", OTHER), ("other_owner", PATH), ("stranger", PATH)):
        assert api.refused(who, "POST", f"{path}/{asked}/approve", {})[0] == 404
    assert api.refused("member", "POST", f"{PATH}/{asked}/approve", {})[0] == 403
    assert api.refused("admin", "DELETE", f"{PATH}/{asked}")[0] == 404
    assert AccessRequest.objects.get().state == "waiting"


Work = Callable[[Api, dict[str, Any]], object]
ENDS: dict[str, Work] = {
    "direct access": lambda api, by: server_access.add_member_vendor(
        user_id=api.cast.user("member").id, vendor="acme", **by
    ),
    "a list": lambda api, by: server_access.replace_member_vendors(
        user_id=api.cast.user("member").id, vendors=["acme"], **by
    ),
    "a team": lambda api, by: join_team(api, by),
    "the default": lambda api, by: organizations.update_settings(default_server_access="all", **by),
    "a role": lambda api, by: members.change_role(user_id=api.cast.user("member").id, role=Role.ADMIN, **by),
    "leaving": lambda api, by: members.leave_organization(actor=api.cast.user("member"), organization=api.cast.org),
    "disconnection": lambda api, by: delete_credential(
        actor=by["actor"], credential=Credential.objects.get(organization=api.cast.org, vendor="acme")
    ),
}


def join_team(api: Api, by: dict[str, Any]) -> None:
    team = teams.create_team(name="Ops", **by)
    server_access.add_team_vendor(team_id=team.id, vendor="acme", **by)
    assert AccessRequest.objects.filter(vendor="acme").exists()
    teams.add_team_member(team_id=team.id, user_id=api.cast.user("member").id, **by)


@pytest.mark.parametrize("how", ENDS)
def test_a_request_ends_without_a_decision(api: Api, asked: str, how: str) -> None:
    elsewhere = Membership.objects.create(
        organization=api.cast.other_org, user=api.cast.user("member"), role=Role.MEMBER.value
    )
    AccessRequest.objects.create(organization=api.cast.other_org, membership=elsewhere, vendor="acme")
    ENDS[how](api, {"actor": api.cast.user("owner"), "organization": api.cast.org})
    assert AccessRequest.objects.get().organization == api.cast.other_org


def test_decisions_are_kept_for_a_month(api: Api, asked: str) -> None:
    api.send("admin", "POST", f"{PATH}/{asked}/decline", {})
    assert remove_old_decisions() == 0
    AccessRequest.objects.update(decided_at=clock.now() - timedelta(days=31))
    ask(api, "globex")
    assert remove_old_decisions() == 1
    assert AccessRequest.objects.get().vendor == "globex"


def test_of_fifty_decisions_one_counts(committed_api: Api) -> None:
    load_vendors("acme", "globex")
    prepare(committed_api)
    organization, row = committed_api.cast.org, AccessRequest.objects.get()

    def decide(number: int) -> Callable[[], object]:
        work = approve_request if number % 2 else decline_request
        who = committed_api.cast.user("owner" if number % 3 else "admin")
        return lambda: work(actor=who, organization=organization, request_id=row.pk)

    codes = refusals_at_once(*map(decide, range(50)))
    assert codes == ["", *["access_request_decided"] * 49]
    decisions = AdminAuditEntry.objects.filter(event_type__in=["access_request.approved", "access_request.declined"])
    assert decisions.count() == 1
    row.refresh_from_db()
    assert ServerAccess.objects.count() == (row.state == "approved")


def test_of_fifty_requests_one_counts(committed_api: Api) -> None:
    load_vendors("acme", "globex")
    prepare(committed_api)
    member, organization = committed_api.cast.user("member"), committed_api.cast.org

    def work() -> object:
        return create_request(
            actor=member, organization=organization, vendor="globex", connected_vendors=lambda: ["globex"]
        )

    assert refusals_at_once(*[work] * 50) == ["", *["access_request_open"] * 49]
