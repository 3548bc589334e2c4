"""Rights, records, bounds and hostile input of the support console."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from audit.models import AdminAuditEntry, RequestAuditEntry
from gateway.lib import clock
from gateway.support import reading
from gateway.support.search import found
from oauth_ext.models import AgentKey
from orgs.models import BrowserSession, Membership, User
from tests.api.support.conftest import Scene, add_call
from tests.api.support.people import ACT, VIEW, act, browser_of, reasons, staff_browser, staff_person
from tests.factories.cast import Cast
from tests.factories.management_tokens import made_token
from tests.factories.statements import statements

HOSTILE = ("' OR 1=1 --", '"; DROP TABLE orgs_user; --', "<script>alert(1)</script>", "%_\\", "a\0b", "@" * 300)


def addresses(scene: Scene) -> dict[str, str]:
    organization = f"/admin/support/organizations/{scene.cast.org.id}"
    member = scene.cast.user("member").id
    key = AgentKey.objects.get(client=scene.tenant.client)
    return {
        "search": "/admin/?q=Acme",
        "organization": organization,
        "request": f"{organization}/requests/req-denied",
        "see as": f"{organization}/see-as/{member}?tool=shut_lookup",
        "agent": f"{organization}/see-as/{scene.tenant.client.id}",
        "person": f"/admin/support/people/{member}",
        "act": f"{organization}/actions/revoke-key/{key.id}",
        "act on person": f"/admin/support/people/{member}/actions/end-sessions",
    }


def reads(scene: Scene) -> list[AdminAuditEntry]:
    return list(AdminAuditEntry.objects.filter(event_type="support.organization_read", org_id=scene.cast.org.id))


# ---- rights ----
@pytest.mark.parametrize("who", ["owner", "member", "other_owner", "nobody"])
def test_others_are_sent_to_the_staff_sign_in(scene: Scene, who: str) -> None:
    browser = scene.cast.client(who)
    for address in addresses(scene).values():
        answer = browser.get(address)
        assert answer.status_code == 302
        assert answer["Location"].startswith("/admin/login/?next=")
    assert reads(scene) == []


def test_staff_without_the_permission_read_nothing(scene: Scene) -> None:
    browser = staff_browser()
    assert {browser.get(address).status_code for address in addresses(scene).values()} == {403}
    assert reads(scene) == []


def test_staff_who_may_view_do_not_act(scene: Scene) -> None:
    browser = staff_browser(VIEW)
    got = {name: browser.get(address).status_code for name, address in addresses(scene).items()}
    assert {name for name, status in got.items() if status == 403} == {"act", "act on person"}
    assert "Revoke key" not in browser.get(addresses(scene)["organization"]).content.decode()
    assert act(browser, "end-sessions", scene.cast.user("member")).status_code == 403


def test_a_permission_alone_makes_nobody_staff(scene: Scene) -> None:
    person = staff_person(VIEW, ACT)
    User.objects.filter(pk=person.pk).update(is_staff=False)
    assert browser_of(person).get("/admin/", follow=True).status_code == 403


def test_tables_are_for_superusers(scene: Scene, staff: Browser) -> None:
    superuser = browser_of(staff_person(name="root", superuser=True))
    for address in ("/admin/tables/", "/admin/orgs/user/"):
        assert staff.get(address).status_code == 403
        assert superuser.get(address).status_code == 200
    assert "Tables" not in staff.get("/admin/").content.decode()
    assert "Organizations" in superuser.get("/admin/tables/").content.decode()


def test_things_of_another_organization_are_not_there(scene: Scene, staff: Browser) -> None:
    organization = f"/admin/support/organizations/{scene.cast.org.id}"
    theirs = AgentKey.objects.get(client=scene.others.client)
    for path in (
        "requests/req-theirs",
        f"see-as/{scene.cast.user('other_owner').id}",
        f"see-as/{scene.others.client.client_id}",
        f"actions/revoke-key/{theirs.id}",
        f"actions/remove-member/{scene.cast.user('other_owner').id}",
        f"actions/delete-agent/{scene.others.client.id}",
        f"actions/cancel-plan/{scene.cast.other_org.id}",
        "actions/revoke-access/none",
        f"actions/revoke-access/{10**18}",
        f"actions/revoke-access/{'9' * 5_000}",
        "actions/nothing/1",
    ):
        assert staff.get(f"{organization}/{path}").status_code == 404, path
    page = staff.get(organization).content.decode()
    assert "Someone else" not in page
    assert "their bot" not in page
    assert staff.get(f"/admin/support/organizations/{uuid.uuid4()}").status_code == 404


# ---- records ----
def test_reading_is_recorded_once_in_half_an_hour(
    scene: Scene, staff: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("organization", "request", "person", "see as"):
        staff.get(addresses(scene)[name])
    row = reads(scene)[0]
    assert len(reads(scene)) == 1
    assert row.actor_label == "Support (support staff)"
    later = clock.now() + reading.READS_ARE_ONE_FOR + timedelta(seconds=1)
    monkeypatch.setattr(reading.clock, "now", lambda: later)
    staff.get(addresses(scene)["organization"])
    assert len(reads(scene)) == 2
    assert not AdminAuditEntry.objects.filter(org_id=scene.cast.other_org.id, event_type__startswith="support").exists()


def test_each_staff_member_is_told(scene: Scene, staff: Browser) -> None:
    staff.get(addresses(scene)["organization"])
    browser_of(staff_person(VIEW, name="second")).get(addresses(scene)["organization"])
    assert {row.actor_label for row in reads(scene)} == {"Support (support staff)", "Second (support staff)"}


def test_the_owner_sees_reads_and_reasons(scene: Scene, staff: Browser, settings: object) -> None:
    settings.BILLING_MODE = "disabled"  # type: ignore[attr-defined]
    staff.get(addresses(scene)["organization"])
    assert act(staff, "end-sessions", scene.cast.user("member")).status_code == 302
    page = scene.cast.client("owner").get(f"/orgs/{scene.cast.org.id}/activity/changes").content.decode()
    assert "support.organization_read" in page
    assert "support.acted" in page
    assert "Support (support staff)" in page


def test_a_reading_of_a_person_is_told_to_each_organization(scene: Scene, staff: Browser) -> None:
    Membership.objects.create(user=scene.cast.user("member"), organization=scene.cast.other_org, role="member")
    staff.get(addresses(scene)["person"])
    told = AdminAuditEntry.objects.filter(event_type="support.organization_read").values_list("org_id", flat=True)
    assert set(told) == {scene.cast.org.id, scene.cast.other_org.id}


# ---- actions ----
@pytest.mark.parametrize("reason", ["", "   ", "abc", "x" * 501])
def test_without_a_reason_nothing_happens(scene: Scene, staff: Browser, reason: str) -> None:
    key = AgentKey.objects.get(client=scene.tenant.client)
    assert act(staff, "revoke-key", key, scene.cast.org, reason=reason).status_code == 422
    assert AgentKey.objects.filter(pk=key.pk).exists()
    assert reasons(scene.cast.org) == []


def test_a_question_has_numbers_and_changes_nothing(scene: Scene, staff: Browser) -> None:
    page = staff.get(addresses(scene)["act"]).content.decode()
    assert "Keys of night bot that end at once: 1." in page
    assert AgentKey.objects.filter(client=scene.tenant.client).exists()
    assert staff.get(f"/admin/support/organizations/{scene.cast.org.id}/actions/revoke-key/none").status_code == 404


def test_sessions_are_ended_and_told(scene: Scene, staff: Browser) -> None:
    member, other = scene.cast.client("member"), scene.cast.client("other_owner")
    assert act(staff, "end-sessions", scene.cast.user("member")).status_code == 302
    assert member.get("/profile").status_code == 302
    assert other.get("/profile").status_code == 200
    assert not BrowserSession.objects.filter(user=scene.cast.user("member")).exists()
    row = AdminAuditEntry.objects.get(event_type="member.sessions_ended")
    assert (row.org_id, row.actor_label) == (scene.cast.org.id, "Support (support staff)")
    assert reasons(scene.cast.org) == [("Support (support staff)", "End sessions", "Ticket 4711")]
    assert reasons(scene.cast.other_org) == []


def test_only_a_superuser_shuts_out_staff(scene: Scene, staff: Browser) -> None:
    root = staff_person(name="root", superuser=True)
    for action in ("deactivate", "end-sessions"):
        answer = act(staff, action, root)
        assert answer.status_code == 403
        assert "Only superusers can do this to support staff." in answer.content.decode()
    root.refresh_from_db()
    assert root.is_active
    assert act(browser_of(staff_person(name="boss", superuser=True)), "end-sessions", root).status_code == 302


def test_a_refused_action_leaves_no_reason(scene: Scene, staff: Browser) -> None:
    assert act(staff, "remove-member", scene.cast.user("owner"), scene.cast.org).status_code == 409
    assert reasons(scene.cast.org) == []
    assert Membership.objects.filter(user=scene.cast.user("owner")).exists()


# ---- search ----
@pytest.mark.parametrize("typed", HOSTILE)
def test_hostile_words_find_nothing_and_do_nothing(scene: Scene, staff: Browser, typed: str) -> None:
    people = User.objects.count()
    page = staff.get("/admin/", {"q": typed})
    assert page.status_code == 200
    assert "<script>alert" not in page.content.decode()
    assert "Nothing found" in page.content.decode()
    assert User.objects.count() == people


def test_a_whole_key_leaves_the_address(scene: Scene, staff: Browser) -> None:
    prefix = scene.tenant.agent_key.rpartition("_")[0]
    answer = staff.get("/admin/", {"q": scene.tenant.agent_key})
    assert answer["Location"] == f"/admin/?q={prefix}"


def test_a_whole_management_token_leaves_the_address(scene: Scene, staff: Browser) -> None:
    token = made_token(scene.cast, "member")
    prefix = token.rpartition("_")[0]
    answer = staff.get("/admin/", {"q": token})
    assert answer["Location"] == f"/admin/?q={prefix}"
    [hit] = found(prefix)
    assert (hit.kind, hit.name, hit.url) == (
        "Management token",
        prefix,
        f"/admin/support/people/{scene.cast.user('member').pk}",
    )
    assert f">{prefix}<" in staff.get(hit.url).content.decode()


@pytest.mark.parametrize(
    ("typed", "kinds", "most"),
    [
        ("Acme", {"Organization"}, 2),
        ("member@example.com", {"Person"}, 1),
        ("MEMBER@example.com", {"Person"}, 1),
        ("req-denied", {"Request"}, 2),
        ("{prefix}", {"Agent key"}, 1),
        ("{client_id}", {"Agent"}, 1),
        ("{org_id}", {"Organization"}, 4),
        ("{user_id}", {"Person"}, 4),
        ("nothing like it", set(), 1),
    ],
)
def test_a_search_asks_few_statements(scene: Scene, typed: str, kinds: set[str], most: int) -> None:
    terms = {
        "prefix": scene.tenant.agent_key.rpartition("_")[0],
        "client_id": scene.tenant.client.client_id,
        "org_id": str(scene.cast.org.id),
        "user_id": str(scene.cast.user("member").id),
    }
    with statements() as seen:
        hits = found(typed.format(**terms))
    assert {hit.kind for hit in hits} == kinds
    assert len(seen) <= most


def test_a_claimed_address_is_marked(scene: Scene) -> None:
    """A thief who signs in with an unverified address may write a ticket in the name of its owner."""
    User.objects.create_user(email="member@example.com", display_name="Thief")
    assert [hit.note for hit in found("member@example.com")] == [
        "member@example.com",
        "member@example.com, not verified",
    ]


def test_a_request_is_found_in_each_organization_along_an_index(scene: Scene) -> None:
    add_call(scene.cast, "req-ok", org_id=scene.cast.other_org.id)
    with CaptureQueriesContext(connection) as queries:
        hits = [hit for hit in found("req-ok") if hit.kind == "Request"]
    assert {hit.note for hit in hits} == {"Acme", "Globex"}
    asked = next(query["sql"] for query in queries if RequestAuditEntry._meta.db_table in query["sql"])
    explain = "EXPLAIN QUERY PLAN " if connection.vendor == "sqlite" else "EXPLAIN "
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL enable_seqscan = off")  # the table of a test is too small for an index
        cursor.execute(explain + asked)
        plan = " ".join(str(row) for row in cursor.fetchall())
    assert "request" in plan
    assert "SCAN audit_requestauditentry" not in plan
    assert "Seq Scan on audit_requestauditentry" not in plan


# ---- bounds ----
@pytest.mark.parametrize(
    ("name", "most"),
    [("search", 7), ("organization", 23), ("request", 18), ("see as", 26), ("person", 12), ("act on person", 13)],
)
def test_a_page_asks_few_statements(scene: Scene, staff: Browser, name: str, most: int) -> None:
    address = addresses(scene)[name]
    staff.get(address)  # records the reading
    with statements() as seen:
        page = staff.get(address)
    assert page.status_code == 200
    assert len(seen) <= most, "\n".join(seen)
    # To see as a person is to read: nothing is counted, stored or asked of a vendor in the person's name.
    assert [each for each in seen if each.startswith(("INSERT", "UPDATE", "DELETE"))] == []
    assert len(page.content) <= 64 * 1024


def test_a_large_organization_stays_a_page(cast: Cast) -> None:
    users = User.objects.bulk_create(User(email=f"p{number}@example.com") for number in range(60))
    Membership.objects.bulk_create(Membership(organization=cast.org, user=user, role="member") for user in users)
    browser = staff_browser(VIEW)
    address = f"/admin/support/organizations/{cast.org.id}"
    page = browser.get(address)
    assert len(page.content) <= 64 * 1024
    assert "p59@example.com" not in page.content.decode()
    assert "p59@example.com" in browser.get(address, {"find": "p59"}).content.decode()


def test_no_page_shows_a_secret(scene: Scene, staff: Browser) -> None:
    for address in addresses(scene).values():
        page = staff.get(address).content.decode()
        assert [each for each in scene.secrets if each in page] == []
