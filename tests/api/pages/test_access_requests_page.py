"""The page of access requests: its four forms, their refusals, and the choice of an end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.http import QueryDict
from django.test import Client as Browser

from gateway.lib import clock
from gateway.lib.errors import Invalid
from gateway.web.access_end import read_end
from orgs.models import AccessRequest, Membership, ServerAccess
from orgs.roles import Role
from orgs.services.access_requests import create_request
from tests.api.pages.conftest import INERT, SCRIPT, Site, hidden, notices, text
from tests.factories.tenant import connect

PAGE = "orgs:access-requests"
NOW = datetime.fromisoformat("2026-03-01T23:30:00+00:00")


@pytest.fixture
def connected(site: Site) -> Site:
    """`fake` is connected in both organizations, and members have no access by default."""
    connect(site.cast.org, site.cast.user("owner"))
    connect(site.cast.other_org, site.cast.user("other_owner"))
    return site


def asked(site: Site) -> AccessRequest:
    """The member's request, which waits."""
    return create_request(
        actor=site.cast.user("member"), organization=site.cast.org, vendor="fake", connected_vendors=lambda: ["fake"]
    )


def send(site: Site, who: str, action: str, row: AccessRequest | None = None, **form: str) -> Any:
    request = {} if row is None else {"request": str(row.pk)}
    return site.cast.client(who).post(site.path(PAGE), {"action": action, **request, **form}, follow=True)


def test_a_member_asks_and_an_admin_decides(connected: Site) -> None:
    page = send(connected, "member", "ask", vendor="fake", reason=SCRIPT)
    assert notices(page) == ["You asked for access to Fake. An admin of Acme will decide."]
    row = AccessRequest.objects.get()
    waiting = connected.cast.client("admin").get(connected.path(PAGE))
    assert INERT in text(waiting)
    assert SCRIPT not in text(waiting)
    assert hidden(waiting, "request") == str(row.pk)
    before = clock.now()
    page = send(connected, "admin", "approve", row, ends="7d")
    access = ServerAccess.objects.get()
    assert access.expires_at is not None
    assert timedelta(0) <= access.expires_at - before - timedelta(days=7) < timedelta(minutes=1)
    assert notices(page) == [f"Member can use Fake until {access.expires_at:%-d %b %Y, %H:%M} UTC."]
    assert access.membership is not None
    assert (access.membership.user, access.organization) == (connected.cast.user("member"), connected.cast.org)


def test_an_admin_declines_with_an_answer_that_the_member_reads(connected: Site) -> None:
    page = send(connected, "admin", "decline", asked(connected), answer="Ask again in June")
    assert notices(page) == ["You declined Member’s request for Fake."]
    assert "Ask again in June" in text(connected.cast.client("member").get(connected.path(PAGE)))
    assert not ServerAccess.objects.exists()


def test_a_member_withdraws(connected: Site) -> None:
    row = asked(connected)
    assert notices(send(connected, "member", "withdraw", row)) == ["Your request was withdrawn."]
    assert notices(send(connected, "admin", "approve", row)) == ["This request has ended. Nothing was changed."]
    assert not AccessRequest.objects.exists()
    assert not ServerAccess.objects.exists()


@pytest.mark.parametrize(
    ("who", "action", "status"),
    [
        ("member", "approve", 403),
        ("member", "decline", 403),
        ("admin", "unheard", 400),
        ("other_owner", "approve", 404),
        ("other_owner", "decline", 404),
        ("other_owner", "withdraw", 404),
        ("stranger", "ask", 404),
    ],
)
def test_a_refused_form_changes_nothing(connected: Site, who: str, action: str, status: int) -> None:
    assert send(connected, who, action, asked(connected), vendor="fake").status_code == status
    assert AccessRequest.objects.get().state == "waiting"
    assert not ServerAccess.objects.exists()


@pytest.mark.parametrize("action", ["approve", "decline"])
def test_a_request_of_another_organization_is_out_of_reach(connected: Site, action: str) -> None:
    row = asked(connected)
    address = f"/orgs/{connected.cast.other_org.id}/access-requests"
    page = connected.cast.client("other_owner").post(address, {"action": action, "request": str(row.pk)}, follow=True)
    assert notices(page) == ["This request has ended. Nothing was changed."]
    assert AccessRequest.objects.get().state == "waiting"
    shown = connected.cast.client("other_owner").get(address)
    assert (shown.context["waiting"], shown.context["decided"]) == ([], [])


def test_only_the_person_who_asked_withdraws(connected: Site) -> None:
    row = asked(connected)
    assert notices(send(connected, "admin", "withdraw", row)) == ["This request has ended. Nothing was changed."]
    assert AccessRequest.objects.get().state == "waiting"


def test_a_second_decision_is_refused(connected: Site) -> None:
    row = asked(connected)
    send(connected, "admin", "decline", row)
    assert notices(send(connected, "owner", "approve", row)) == ["This request has already been decided."]
    assert not ServerAccess.objects.exists()


def test_asking_without_need_is_refused(connected: Site) -> None:
    asked(connected)
    assert notices(send(connected, "member", "ask", vendor="fake")) == ["You’ve already asked for Fake."]
    assert notices(send(connected, "admin", "ask", vendor="fake")) == ["You already have access to Fake."]
    assert AccessRequest.objects.count() == 1


def test_members_see_their_own_requests_only(connected: Site) -> None:
    asked(connected)
    Membership.objects.create(
        organization=connected.cast.org, user=connected.cast.user("stranger"), role=Role.MEMBER.value
    )
    page = connected.cast.client("stranger").get(connected.path(PAGE))
    assert "waiting" not in page.context
    assert [own for _, own in page.context["askable"]] == [None]


@pytest.mark.parametrize(
    "next_page", ["https://evil.example/", "//evil.example/", "/orgs/0/", "javascript:alert(1)", "\\\\evil.example"]
)
def test_it_leads_back_into_this_organization_only(connected: Site, next_page: str) -> None:
    form = {"action": "ask", "vendor": "fake", "next": next_page}
    answer = connected.cast.client("member").post(connected.path(PAGE), form)
    assert (answer.status_code, answer["Location"]) == (302, connected.path(PAGE))


def test_forms_need_their_token(connected: Site) -> None:
    browser = Browser(enforce_csrf_checks=True)
    browser.cookies = connected.cast.client("member").cookies
    assert browser.post(connected.path(PAGE), {"action": "ask", "vendor": "fake"}).status_code == 403
    assert not AccessRequest.objects.exists()


@pytest.mark.parametrize(
    ("ends", "day", "expected"),
    [
        ("", "", None),
        ("1h", "", "2026-03-02T00:30:00+00:00"),
        ("30d", "", "2026-03-31T23:30:00+00:00"),
        # The last day counts in full, also when it is today.
        ("date", "2026-03-01", "2026-03-02T00:00:00+00:00"),
        ("date", " 2028-02-29 ", "2028-03-01T00:00:00+00:00"),
    ],
)
def test_an_end_is_read(ends: str, day: str, expected: str | None) -> None:
    found = read_end(QueryDict(f"ends={ends}&ends_on={day}"), NOW)
    assert (None if found is None else found.isoformat()) == expected


@pytest.mark.parametrize(
    ("ends", "day"),
    [
        ("2h", ""),
        ("1h", "2026-04-01"),
        ("", "2026-04-01"),
        ("date", ""),
        ("date", "2026-02-28"),
        ("date", "soon"),
        ("date", "9999-12-31"),
        ("date", "2026-02-30"),
    ],
)
def test_an_unclear_end_is_refused(ends: str, day: str) -> None:
    with pytest.raises(Invalid):
        read_end(QueryDict(f"ends={ends}&ends_on={day}"), NOW)


@pytest.mark.parametrize(("ends", "day"), [("date", "2020-01-31"), ("date", "9999-01-01"), ("2h", ""), ("1h", "x")])
def test_an_approval_with_a_bad_end_gives_nothing(connected: Site, ends: str, day: str) -> None:
    page = send(connected, "admin", "approve", asked(connected), ends=ends, ends_on=day)
    assert len(notices(page)) == 1
    assert AccessRequest.objects.get().state == "waiting"
    assert not ServerAccess.objects.exists()
