"""`limit` and `cursor` of long lists: every row once, in order, and no row of anybody else."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.core import signing

from gateway.lib import clock
from oauth_ext.models import Client, ServiceClientVendor
from oauth_ext.services.service_clients import create_service_client
from orgs.models import Alert, AlertMessage, Invitation, Membership, ServerAccess, Team
from orgs.services import invitation_sealing
from orgs.services.invitations import create_invitation
from tests.factories.api import Api
from tests.factories.cast import Cast, make_person
from tests.factories.destinations import webhook_of

NEXT = re.compile(r'<http://testserver/api(?P<path>[^>]+)>; rel="next"')


def fill_members(cast: Cast) -> None:
    for number in range(7):
        Membership.objects.create(organization=cast.org, user=make_person(f"person{number}"), role="member")
    Membership.objects.filter(organization=cast.org).update(joined_at=clock.now())  # told apart by their keys only


def fill_teams(cast: Cast) -> None:
    for number in range(7):
        Team.objects.create(organization=cast.org, name=f"Team {number % 4} {number}")


def fill_invitations(cast: Cast) -> None:
    for _ in range(7):
        create_invitation(actor=cast.user("owner"), organization=cast.org)


def fill_clients(cast: Cast) -> None:
    for number in range(7):
        create_service_client(actor=cast.user("owner"), organization=cast.org, name=f"bot {number}")
    Client.objects.filter(name="bot 3").update(created=clock.now() - timedelta(days=9))


def fill_access(cast: Cast) -> None:
    membership = Membership.objects.get(user=cast.user("member"))
    client = create_service_client(actor=cast.user("owner"), organization=cast.org, name="bot").client
    for number in range(4):
        ServerAccess.objects.create(organization=cast.org, membership=membership, vendor=f"v{number}")
        ServiceClientVendor.objects.create(client=client, vendor=f"v{number}")


def fill_destinations(cast: Cast) -> None:
    for number in range(7):
        webhook_of(cast.user("owner"), cast.org, f"SIEM {number % 3}")


def fill_alerts(cast: Cast) -> None:
    now = clock.now()
    for number in range(7):
        alert = Alert.objects.create(organization=cast.org, kind="vendor_down", cause=f"v{number}", began_at=now)
        AlertMessage.objects.create(
            organization=cast.org, alert=alert, kind=alert.kind, moment="begin", began_at=now, created_at=now
        )


LISTS = {
    "members": fill_members,
    "teams": fill_teams,
    "invitations": fill_invitations,
    "service-clients": fill_clients,
    "server-access": fill_access,
    "log-shipping": fill_destinations,
    "alerts": fill_alerts,
    "alert-messages": fill_alerts,
}


def pages(api: Api, path: str) -> list[list[Any]]:
    """Every part of a list, as a client that follows `Link` reads them."""
    found: list[list[Any]] = []
    while True:
        answer = api.send("admin", "GET", path)
        assert answer.status_code == 200, answer.content
        found.append(answer.json())
        link = NEXT.fullmatch(answer.get("Link", ""))
        if link is None:
            return found
        path = link["path"]


def ageless(row: dict[str, Any]) -> dict[str, Any]:
    """A row without the figure that grows between two requests."""
    return {name: value for name, value in row.items() if name != "lagSeconds"}


@pytest.mark.parametrize(("name", "fill"), LISTS.items(), ids=LISTS)
@pytest.mark.parametrize("limit", [1, 3, 1_000])
def test_pages_make_the_whole_list(api: Api, name: str, fill: Callable[[Cast], None], limit: int) -> None:
    fill(api.cast)
    path = f"/orgs/{{org}}/{name}"
    answer = api.send("admin", "GET", path)
    assert "Link" not in answer
    whole = answer.json()
    assert len(whole) >= 7
    found = pages(api, f"{path}?limit={limit}")
    assert [ageless(row) for part in found for row in part] == [ageless(row) for row in whole]
    assert [len(part) for part in found[:-1]] == [limit] * ((len(whole) - 1) // limit)
    assert found[-1]


def test_a_row_that_goes_moves_no_other(api: Api) -> None:
    fill_teams(api.cast)
    names = [team["name"] for team in api.get("admin", "/orgs/{org}/teams")]
    first = api.send("admin", "GET", "/orgs/{org}/teams?limit=3")
    Team.objects.filter(name__in=names[1:3]).delete()
    link = NEXT.fullmatch(first["Link"])
    assert link is not None
    assert [team["name"] for team in api.get("admin", link["path"])] == names[3:6]


def test_only_the_links_that_are_shown_are_opened(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_invitations(api.cast)
    opened: list[Invitation] = []
    keyring = invitation_sealing.keyring

    def counted() -> Any:
        opened.append(Invitation())
        return keyring()

    monkeypatch.setattr(invitation_sealing, "keyring", counted)
    assert len(api.get("admin", "/orgs/{org}/invitations?limit=2")) == 2
    assert len(opened) == 2


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=1001", "limit=-1", "limit=x", "limit=", "limit=9999999999", "limit=%C2%B2", "cursor=x"]
)
def test_what_no_answer_gave_is_refused(api: Api, query: str) -> None:
    assert api.refused("admin", "GET", f"/orgs/{{org}}/members?{query}") == (400, "invalid")
    forged = signing.dumps([0, "x", "y"])
    assert api.refused("admin", "GET", f"/orgs/{{org}}/members?cursor={forged}") == (400, "invalid")


def test_a_cursor_is_for_its_own_list(api: Api) -> None:
    fill_members(api.cast)
    first = api.send("admin", "GET", "/orgs/{org}/members?limit=1")
    link = NEXT.fullmatch(first["Link"])
    assert link is not None
    query = link["path"].partition("?")[2]
    assert api.refused("other_owner", "GET", f"/orgs/{{other}}/members?{query}") == (400, "invalid")
    assert api.refused("stranger", "GET", f"/orgs/{{org}}/members?{query}") == (404, "not_found")
