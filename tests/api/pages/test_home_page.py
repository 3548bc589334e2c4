"""Home: how things stand, for an admin and for a member; and the first steps, which end by themselves."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest

from audit.actor import system
from audit.models import AdminAuditEntry
from audit.selectors import recent_calls
from billing.services import set_subscription
from billing.states import SubscriptionStatus
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.vendor_check import Verdict
from gateway.coordination import backend
from gateway.lib import clock
from oauth_ext.models import Client
from orgs.alert_terms import AlertKind
from orgs.models import Alert, KnownTool, Membership, Organization, ServerAccess, Team, TeamMembership, User
from orgs.services.access_requests import create_request
from proxy.control_plane.alerts.facts import SIGN_IN_NEEDED
from proxy.control_plane.health.states import HealthStatus
from tests.api.audit.rows import add_row
from tests.api.pages.conftest import INERT, SCRIPT, Site, notices, text
from tests.factories.catalog_text import load_catalog
from tests.factories.health import connected_vendor, put_health
from tests.factories.statements import statements
from tests.factories.tenant import connect, load_vendor, make_tenant

MEMBERS, VENDORS, AGENTS = 200, 50, 100
MAX_STATEMENTS = 15


def home(site: Site, who: str = "owner") -> Any:
    response = site.cast.client(who).get(site.path("proxy_pages:home"))
    assert response.status_code == 200
    return response


def waiting(response: Any) -> list[str]:
    return [row.text for row in response.context["waiting"]]


def steps(response: Any) -> dict[str, bool] | None:
    found = response.context["first_steps"]
    return None if found is None else {step.key: step.is_done for step in found.steps}


@pytest.fixture
def connected(site: Site) -> Site:
    """The organization has the vendor `fake`; the other one has trouble of its own."""
    connect(site.cast.org, site.cast.user("owner"))
    put_health(backend.current(), "fake", HealthStatus.HEALTHY)
    load_vendor("http://127.0.0.1:9/mcp", slug="theirs")
    connect(site.cast.other_org, site.cast.user("other_owner"), "theirs")
    put_health(backend.current(), "theirs", HealthStatus.DOWN)
    add_row(org_id=site.cast.other_org.id, timestamp=clock.now(), status="error")
    return site


def reject(site: Site, **changes: object) -> None:
    """A call that the vendor refused because of the organization's credentials."""
    facts: dict[str, object] = {"vendor": "fake", "credential_scope": "organization", "status": "error"}
    facts |= {"error_code": "vendor_rejected_credentials", "timestamp": clock.now() + timedelta(seconds=1)}
    add_row(org_id=site.cast.org.id, **{**facts, **changes})


def test_an_organization_in_order_says_so_and_teaches(connected: Site) -> None:
    page = text(home(connected))
    assert "All vendors are responding and accept the stored credentials." in page
    assert "You’re all caught up." in page
    assert "No calls in the last 7 days." in page
    assert "theirs" not in page.lower()


def test_a_vendor_that_is_down_says_since_when(connected: Site) -> None:
    put_health(backend.current(), "fake", HealthStatus.DOWN, error_detail="no answer, 3 failures in a row")
    (trouble,) = home(connected).context["troubles"]
    assert (trouble.vendor, trouble.is_down, trouble.rejected) == ("fake", True, False)
    page = text(home(connected))
    assert f'<a href="{connected.path("proxy_pages:vendor", "fake")}">Fake</a> is not responding' in page
    assert "No answer, 3 failures in a row" in page


def test_rejected_credentials_are_broken_and_wait_for_an_admin(connected: Site) -> None:
    reject(connected)
    response = home(connected, "admin")
    (trouble,) = response.context["troubles"]
    assert (trouble.is_down, trouble.rejected) == (False, True)
    assert waiting(response) == ["Replace the Fake credentials"]
    assert connected.path("credentials:connection", "fake") in text(response)


def test_what_waits_leads_to_where_it_is_settled(connected: Site) -> None:
    org, owner = connected.cast.org, connected.cast.user("owner")
    KnownTool.objects.create(organization=org, vendor="fake", tool="fake_new", seen_sha256=b"1")
    create_request(
        actor=connected.cast.user("member"), organization=org, vendor="fake", connected_vendors=lambda: ["fake"]
    )
    soon = make_tenant(org, owner, "Night bot").client
    Client.objects.filter(pk=soon.pk).update(expires_at=clock.now() + timedelta(days=13))
    late = make_tenant(org, owner, "Day bot").client
    Client.objects.filter(pk=late.pk).update(expires_at=clock.now() + timedelta(days=15))
    gone = make_tenant(org, owner, "Past bot").client
    Client.objects.filter(pk=gone.pk).update(expires_at=clock.now() - timedelta(days=1))
    response = home(connected, "admin")
    assert waiting(response) == [
        "1 access request",
        "Review 1 tool change at Fake",
        "The agent Night bot and its key expire",
    ]
    page = text(response)
    for path in (
        connected.path("orgs:access-requests"),
        connected.path("proxy_pages:tool-access", "fake") + "#changes",
        connected.path("oauth_pages:service-client", soon.client_id),
    ):
        assert f'<a href="{path}">' in page


def test_an_admin_sees_the_alerts_that_no_other_section_shows(connected: Site) -> None:
    ours, theirs = connected.cast.org, connected.cast.other_org
    alert(ours, AlertKind.ERROR_SPIKE, "fake", "Fake")
    alert(ours, AlertKind.LOG_SHIPPING_FAILING, str(uuid.uuid4()), "SIEM", detail="refused")
    alert(ours, AlertKind.CREDENTIAL_REJECTED, str(uuid.uuid4()), "Notion", detail=SIGN_IN_NEEDED)
    alert(ours, AlertKind.CREDENTIAL_REJECTED, str(uuid.uuid4()), "Shown elsewhere")
    alert(ours, AlertKind.VENDOR_DOWN, "acme", "Shown elsewhere")
    alert(ours, AlertKind.ERROR_SPIKE, "acme", "Over", ended_at=clock.now())
    alert(theirs, AlertKind.ERROR_SPIKE, "fake", "Theirs")
    response = home(connected, "admin")
    assert sorted(waiting(response)) == [
        "Log shipping to SIEM is failing",
        "Many calls to Fake are failing",
        "Notion rejects the stored credentials",
    ]
    assert f"/orgs/{ours.id}/vendors/fake/activity" in text(response)
    assert "Many calls to Fake are failing" not in text(home(connected, "member"))


def alert(organization: Organization, kind: AlertKind, cause: str, label: str, **columns: Any) -> None:
    Alert.objects.create(
        organization=organization, kind=kind.value, cause=cause, label=label, began_at=clock.now(), **columns
    )


def test_changes_are_sentences_with_links(connected: Site) -> None:
    page = text(home(connected))
    assert f'stored credentials for <a href="{connected.path("proxy_pages:vendor", "fake")}">Fake</a>' in page
    entry = AdminAuditEntry.objects.get(org_id=connected.cast.org.id)
    assert f'href="{connected.path("orgs:person", entry.actor_id)}">{entry.actor_label}</a> stored' in page
    assert str(connected.cast.other_org.id) not in page


def test_a_name_in_the_log_is_inert(connected: Site) -> None:
    AdminAuditEntry.objects.filter(org_id=connected.cast.org.id).update(actor_label=SCRIPT)
    page = text(home(connected))
    assert SCRIPT not in page
    assert INERT in page


def test_the_drawing_counts_the_organization_for_admins_and_the_person_for_members(connected: Site) -> None:
    org, member = connected.cast.org, connected.cast.user("member")
    now = clock.now()
    add_row(org_id=org.id, timestamp=now, user_id=str(member.id))
    add_row(org_id=org.id, timestamp=now, user_id=str(member.id), status="error")
    add_row(org_id=org.id, timestamp=now, user_id="service", status="error")
    add_row(org_id=org.id, timestamp=now, user_id="service", status="denied")
    add_row(org_id=org.id, timestamp=now - timedelta(days=8), user_id=str(member.id))
    for who, calls, errors in (("admin", 4, 2), ("member", 2, 1)):
        context = home(connected, who).context
        assert (context["calls"], context["errors"]) == (calls, errors)
        assert [bar.day.calls for bar in context["bars"]][-1] == calls
        assert context["bars"][-1].error_height == 36
    nobody = recent_calls(org.id, 2, user_id="nobody")
    assert ([day.calls for day in nobody.days], nobody.has_any) == ([0, 0], False)


def test_a_member_sees_what_is_theirs(connected: Site) -> None:
    reject(connected)
    response = home(connected, "member")
    page = text(response)
    # No access yet: another's trouble is no news, and settling it is no business of a member.
    assert response.context["troubles"] == []
    for heading in ("Waiting for you", "Changed"):
        assert heading not in page
    assert "Ask for access" in page
    Membership.objects.get(organization=connected.cast.org, user=connected.cast.user("member"))
    row = Membership.objects.get(organization=connected.cast.org, user=connected.cast.user("member"))
    ServerAccess.objects.create(organization=connected.cast.org, membership=row, vendor="fake")
    response = home(connected, "member")
    assert [each.vendor for each in response.context["troubles"]] == ["fake"]
    assert [entry.vendor_slug for entry in response.context["usable"]] == ["fake"]


def test_a_members_request_is_shown_to_the_member_with_its_answer(connected: Site) -> None:
    row = create_request(
        actor=connected.cast.user("member"),
        organization=connected.cast.org,
        vendor="fake",
        connected_vendors=lambda: ["fake"],
    )
    assert "Fake: waiting for an admin" in text(home(connected, "member"))
    type(row).objects.filter(pk=row.pk).update(state="declined", answer="Use Acme")
    assert "“Use Acme”" in text(home(connected, "member"))
    assert home(connected, "owner").context.get("requests") is None


def test_without_a_plan_calls_are_counted_and_the_logs_stay_closed(connected: Site, settings: Any) -> None:
    settings.BILLING_MODE = "manual"
    add_row(org_id=connected.cast.org.id, timestamp=clock.now(), status="error")
    for who in ("owner", "admin"):
        response = home(connected, who)
        assert (response.context["calls"], response.context["errors"]) == (1, 0)
        page = text(response)
        assert "needs an active plan" in page
        assert "stored credentials for" not in page
        assert ("The plan is not active" in waiting(response)) is (who == "owner")
    assert "needs an active plan" not in text(home(connected, "member"))


# ---- the first steps ----


@pytest.fixture
def alone(site: Site) -> Site:
    """An organization with nothing set up; the other one has everything."""
    other, foreigner = site.cast.other_org, site.cast.user("other_owner")
    Client.objects.update(organization=other)
    connect(other, foreigner)
    add_row(org_id=other.id, timestamp=clock.now())
    return site


def test_a_new_organization_has_everything_before_it(alone: Site) -> None:
    response = home(alone)
    assert steps(response) == {"vendor": False, "client": False, "call": False}
    assert response.context["first_steps"].next.key == "vendor"
    page = text(response)
    assert "0 of 3 done" in page
    for route in ("credentials:catalog", "proxy_pages:setup", "oauth_pages:service-client-new"):
        assert f'href="{alone.path(route)}"' in page


def test_the_steps_of_an_admin_end_with_the_first_call(alone: Site) -> None:
    connect(alone.cast.org, alone.cast.user("owner"))
    assert steps(home(alone)) == {"vendor": True, "client": False, "call": False}
    Client.objects.update(organization=alone.cast.org)
    response = home(alone)
    assert steps(response) == {"vendor": True, "client": True, "call": False}
    assert response.context["first_steps"].next.key == "call"
    add_row(org_id=alone.cast.org.id, timestamp=clock.now() - timedelta(days=30))
    response = home(alone)
    assert steps(response) is None
    assert "First steps" not in text(response)


def test_the_steps_of_a_member_begin_with_access_and_end_with_an_own_call(alone: Site) -> None:
    cast = alone.cast
    assert steps(home(alone, "member")) == {"access": False, "client": False, "call": False}
    connect(cast.org, cast.user("owner"))
    row = Membership.objects.get(organization=cast.org, user=cast.user("member"))
    ServerAccess.objects.create(organization=cast.org, membership=row, vendor="fake")
    add_row(org_id=cast.org.id, timestamp=clock.now(), user_id="somebody-else")
    response = home(alone, "member")
    assert steps(response) == {"client": False, "call": False, "access": True}
    page = text(response)
    assert alone.path("oauth_pages:service-clients") not in page
    assert alone.path("credentials:catalog") not in page
    add_row(org_id=cast.org.id, timestamp=clock.now(), user_id=str(cast.user("member").id))
    assert steps(home(alone, "member")) is None


def test_the_steps_can_be_hidden_and_shown_again(alone: Site) -> None:
    browser, path = alone.cast.client("member"), alone.path("proxy_pages:home")
    answer = browser.post(path, {"action": "hide"})
    assert (answer.status_code, answer["Location"]) == (302, path)
    cookie = answer.cookies["steps_hidden"]
    assert (cookie["path"], cookie["httponly"], cookie["samesite"]) == (path, True, "Lax")
    assert "First steps" not in text(browser.get(path))
    browser.post(path, {"action": "show"})
    assert "First steps" in text(browser.get(path))


@pytest.mark.parametrize(("who", "status"), [("other_owner", 404), ("stranger", 404), ("nobody", 302)])
def test_strangers_can_neither_see_nor_hide(alone: Site, who: str, status: int) -> None:
    browser, path = alone.cast.client(who), alone.path("proxy_pages:home")
    assert browser.get(path).status_code == status
    answer = browser.post(path, {"action": "hide"})
    assert answer.status_code == status
    assert "steps_hidden" not in answer.cookies


# ---- as large as organizations get ----


def grow(site: Site) -> None:
    """MEMBERS, VENDORS, AGENTS, and trouble of each kind, in bulk."""
    org, owner = site.cast.org, site.cast.user("owner")
    people = User.objects.bulk_create(User(email=f"p{number}@example.org") for number in range(MEMBERS))
    rows = Membership.objects.bulk_create(Membership(organization=org, user=each, role="member") for each in people)
    team = Team.objects.create(organization=org, name="Night shift")
    TeamMembership.objects.bulk_create(TeamMembership(team=team, membership=each) for each in rows)
    TeamMembership.objects.create(
        team=team, membership=Membership.objects.get(organization=org, user=site.cast.user("member"))
    )
    agents = []
    for number in range(AGENTS):
        client = make_tenant(org, owner, f"Bot {number}").client
        agents.append(client)
    Client.objects.filter(organization=org).update(expires_at=clock.now() + timedelta(days=5))
    for number in range(VENDORS):
        connected_vendor(org, f"v{number}")
        put_health(backend.current(), f"v{number}", HealthStatus.DOWN)
        KnownTool.objects.create(organization=org, vendor=f"v{number}", tool="tool", seen_sha256=b"1")
    ServerAccess.objects.bulk_create(
        ServerAccess(organization=org, team=team, vendor=f"v{number}") for number in range(1, VENDORS)
    )
    more = ((CredentialScope.TEAM, {"team": team}), (CredentialScope.SERVICE_CLIENT, {"service_client": agents[0]}))
    for scope, holder in more:
        Credential.objects.create(
            organization=org, vendor="v1", scope=scope.value, data_key_version=1, sealed=b"", **holder
        )
    for scope, user_id in (("organization", "x"), ("team", str(people[0].id)), ("service_client", agents[0].subject)):
        reject(site, vendor="v1", credential_scope=scope, user_id=user_id)
    for number in range(10):
        create_request(actor=people[number], organization=org, vendor="v0", connected_vendors=lambda: ["v0"])
    AdminAuditEntry.objects.all().update(actor_label=uuid.uuid4().hex)


@pytest.mark.parametrize("who", ["owner", "member"])
def test_the_number_of_queries_is_bounded(site: Site, settings: Any, who: str) -> None:
    grow(site)
    settings.BILLING_MODE = "manual"
    set_subscription(actor=system("test"), organization=site.cast.org, status=SubscriptionStatus.ACTIVE)
    browser, path = site.cast.client(who), site.path("proxy_pages:home")
    with statements() as seen:
        response = browser.get(path)
    assert response.status_code == 200
    asked = [sql for sql in seen if sql.lstrip().startswith(("SELECT", "WITH", "UPDATE", "INSERT", "DELETE"))]
    assert len(asked) <= MAX_STATEMENTS, "\n\n".join(each[:300] for each in asked)
    assert response.context["troubles_left"] > 0


def test_an_organization_with_nothing_costs_no_more(alone: Site, settings: Any) -> None:
    settings.BILLING_MODE = "manual"
    for who in ("owner", "admin", "member"):
        browser = alone.cast.client(who)
        with statements() as seen:
            assert browser.get(alone.path("proxy_pages:home")).status_code == 200
        asked = [sql for sql in seen if sql.lstrip().startswith(("SELECT", "WITH", "UPDATE", "INSERT", "DELETE"))]
        assert len(asked) <= MAX_STATEMENTS, "\n\n".join(each[:300] for each in asked)


# ---- the sample vendor ----

SAMPLE = """
[[vendor]]
slug = "sampled"
name = "Sampled"
url = "http://127.0.0.1:9/mcp"
[[vendor.headers]]
name = "X-Api-Key"
value = "{apiKey}"
[[vendor.fields]]
name = "apiKey"
[vendor.sample]
apiKey = "demo-{random}"
"""


@pytest.fixture
def sampled(alone: Site) -> Site:
    load_catalog(SAMPLE, "test catalog")
    return alone


def ask_for_sample(site: Site, who: str, vendor: str = "sampled") -> Any:
    return site.cast.client(who).post(
        site.path("proxy_pages:home"), {"action": "sample", "vendor": vendor}, follow=True
    )


def test_the_sample_vendor_is_connected_in_one_click(sampled: Site) -> None:
    for route in ("proxy_pages:home", "credentials:catalog"):
        assert "Try Sampled with sample data" in text(sampled.owner().get(sampled.path(route)))
    response = ask_for_sample(sampled, "admin")
    assert notices(response) == ["Sampled is connected with sample data."]
    assert [row.vendor for row in Credential.objects.filter(organization=sampled.cast.org)] == ["sampled"]
    (sent,) = sampled.asked
    assert len(sent["X-Api-Key"]) == len("demo-") + 24
    assert steps(response) == {"vendor": True, "client": False, "call": False}
    assert "Try Sampled" not in text(response)


def test_a_sample_replaces_no_credential(sampled: Site) -> None:
    connect(sampled.cast.org, sampled.cast.user("owner"), "sampled")
    before = Credential.objects.get(organization=sampled.cast.org).updated_at
    assert notices(ask_for_sample(sampled, "owner")) == ["Sampled is already connected. Nothing changed."]
    assert Credential.objects.get(organization=sampled.cast.org).updated_at == before
    assert not sampled.asked


def test_a_vendor_that_refuses_its_sample_stays_away(sampled: Site) -> None:
    sampled.vendor_status = 401
    assert len(notices(ask_for_sample(sampled, "owner"))) == 1
    assert not Credential.objects.filter(organization=sampled.cast.org).exists()


@pytest.mark.parametrize(
    ("who", "vendor", "status"),
    [
        ("owner", "fake", 404),  # has no sample
        ("owner", "unknown", 404),
        ("member", "sampled", 403),
        ("other_owner", "sampled", 404),
        ("stranger", "sampled", 404),
    ],
)
def test_a_sample_is_for_admins_and_marked_vendors(sampled: Site, who: str, vendor: str, status: int) -> None:
    assert ask_for_sample(sampled, who, vendor).status_code == status
    assert not Credential.objects.filter(organization=sampled.cast.org).exists()
    assert not sampled.asked


def test_a_sample_needs_a_plan(sampled: Site, settings: Any) -> None:
    settings.BILLING_MODE = "manual"
    assert ask_for_sample(sampled, "owner").status_code == 402
    assert not sampled.asked


def test_without_a_marked_vendor_nothing_is_offered(alone: Site) -> None:
    assert "with sample data" not in text(home(alone))
    assert "with sample data" not in text(alone.owner().get(alone.path("credentials:catalog")))


def test_a_member_hears_nothing_of_another_teams_credentials(connected: Site) -> None:
    org = connected.cast.org
    row = Membership.objects.get(organization=org, user=connected.cast.user("member"))
    ServerAccess.objects.create(organization=org, membership=row, vendor="fake")
    team = Team.objects.create(organization=org, name="Night shift")
    stored = connect(org, connected.cast.user("owner"), scope=CredentialScope.TEAM, more={"team": team})
    Credential.objects.filter(pk=stored.pk).update(
        check_verdict=Verdict.REJECTED.value, checked_at=clock.now() + timedelta(seconds=1)
    )
    assert [each.vendor for each in home(connected, "admin").context["troubles"]] == ["fake"]
    assert home(connected, "member").context["troubles"] == []
    TeamMembership.objects.create(team=team, membership=row)
    assert [each.vendor for each in home(connected, "member").context["troubles"]] == ["fake"]
