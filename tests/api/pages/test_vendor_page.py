"""The pages of one vendor: how it stands, who may use it, and its calls."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from gateway.coordination.sqlite_store import SQLiteStore
from gateway.lib import clock
from oauth_ext.models import ServiceClientVendor
from orgs.models import Membership, ServerAccess, Team, TeamMembership
from proxy.control_plane.health.states import HealthStatus
from proxy.vendors.destination import PoolKey
from proxy.vendors.era_verdicts import EraVerdicts
from tests.api.audit.rows import add_row
from tests.api.audit.usage.rows import log_row, store
from tests.api.pages.conftest import Site, notices, text
from tests.factories.health import put_health
from tests.factories.tenant import connect

VENDOR, ACCESS, ACTIVITY = "proxy_pages:vendor", "proxy_pages:vendor-access", "audit_pages:vendor-activity"


@pytest.fixture
def connected(site: Site) -> Site:
    """`fake` is connected in both organizations, and members have no access by default."""
    connect(site.cast.org, site.cast.user("owner"))
    connect(site.cast.other_org, site.cast.user("other_owner"))
    for organization in (site.cast.org, site.cast.other_org):
        organization.default_server_access = "none"
        organization.save()
    return site


def member(site: Site) -> Membership:
    return Membership.objects.get(organization=site.cast.org, user=site.cast.user("member"))


def holders(site: Site, kind: str) -> dict[str, tuple[str, ...]]:
    """Name to the reasons for access."""
    context = site.cast.client("admin").get(site.path(ACCESS, "fake")).context
    return {each.name: each.reasons for each in context[kind]}


def change(site: Site, kind: str, key: str, *, who: str = "admin", gives: bool = True) -> Any:
    form = {"kind": kind, "key": key, "give" if gives else "remove": "1"}
    return site.cast.client(who).post(site.path(ACCESS, "fake"), form, follow=True)


def test_a_vendor_that_is_not_connected_has_one_next_step(site: Site) -> None:
    link = f'href="{site.path("credentials:connection", "fake")}">Connect Fake'
    assert link in text(site.cast.client("admin").get(site.path(VENDOR, "fake")))
    page = text(site.cast.client("member").get(site.path(VENDOR, "fake")))
    assert link not in page
    assert "Ask an admin: Owner, Admin" in page


def test_the_version_that_calls_use_has_its_date(connected: Site, shared: SQLiteStore) -> None:
    """Of the organization's own credentials alone."""
    own, foreign = (Credential.objects.get(organization=org) for org in (connected.cast.org, connected.cast.other_org))
    put_health(shared, "fake", HealthStatus.HEALTHY)
    keep = async_to_sync(EraVerdicts(shared, b"s", max_verdicts=9, now_s=lambda: 1_790_000_000.0).keep)
    keep(PoolKey.of(foreign.organization_id, "fake", foreign.id, "https://fake.example.com", {}), "2026-07-28")
    page = text(connected.cast.client("member").get(connected.path(VENDOR, "fake")))
    assert "MCP 20" not in page
    keep(PoolKey.of(own.organization_id, "fake", own.id, "https://fake.example.com", {}), "2025-11-25")
    page = text(connected.cast.client("member").get(connected.path(VENDOR, "fake")))
    assert "MCP 2025-11-25" in page
    assert 'datetime="2026-09-21T14:13:20' in page


@pytest.mark.parametrize("name", [VENDOR, ACCESS, ACTIVITY])
def test_an_unknown_vendor_is_not_found(site: Site, name: str) -> None:
    assert site.owner().get(site.path(name, "unheard")).status_code == 404


@pytest.mark.parametrize(
    ("who", "labels"),
    [("admin", ["Overview", "Access", "Tools", "Activity", "Settings"]), ("member", ["Overview"])],
)
def test_each_tab_opens_for_who_sees_it(connected: Site, who: str, labels: list[str]) -> None:
    browser = connected.cast.client(who)
    tabs = browser.get(connected.path(VENDOR, "fake")).context["tabs"]
    assert [tab["label"] for tab in tabs] == labels
    for tab in tabs:
        page = browser.get(tab["url"])
        assert page.status_code == 200
        assert "<h1>Fake</h1>" in text(page)
        assert [each["label"] for each in page.context["tabs"] if each["active"]] == [tab["label"]]


def test_its_figures_are_those_of_this_vendor_and_organization(connected: Site) -> None:
    at, failed = (
        clock.now().replace(microsecond=0) - timedelta(hours=1),
        {"status": "error", "error_code": "tool_error"},
    )
    org_id, other_id = connected.cast.org.id, connected.cast.other_org.id
    store(
        log_row(at, org_id=org_id, vendor="fake", tool="listed"),
        log_row(at, org_id=org_id, vendor="fake", request_id="its-error", **failed),
        log_row(at, org_id=org_id, vendor="elsewhere", request_id="anothers", **failed),
        log_row(at, org_id=other_id, vendor="fake", request_id="foreign", **failed),
    )
    context = connected.cast.client("admin").get(connected.path(VENDOR, "fake")).context
    assert (context["usage"].total.calls, context["usage"].total.errors) == (2, 1)
    assert [entry.request_id for entry, _ in context["errors"]] == ["its-error"]
    assert "usage" not in connected.cast.client("member").get(connected.path(VENDOR, "fake")).context


@pytest.mark.usefixtures("lapsed")
def test_without_a_plan_the_page_keeps_its_state_and_hides_calls(connected: Site) -> None:
    add_row(org_id=connected.cast.org.id, vendor="fake", status="error", request_id="withheld-id")
    page = connected.cast.client("admin").get(connected.path(VENDOR, "fake"))
    assert page.status_code == 200
    assert "needs an active plan" in text(page)
    assert "withheld-id" not in text(page)
    assert connected.cast.client("admin").get(connected.path(ACTIVITY, "fake")).status_code == 402


def test_activity_shows_this_vendors_calls_only(connected: Site) -> None:
    add_row(org_id=connected.cast.org.id, vendor="fake", tool="listed", request_id="its")
    add_row(org_id=connected.cast.org.id, vendor="elsewhere", tool="listed")
    add_row(org_id=connected.cast.other_org.id, vendor="fake", tool="listed")
    browser = connected.cast.client("admin")
    for query in ("", "?tool=listed", "?vendor=elsewhere"):
        page = browser.get(connected.path(ACTIVITY, "fake") + query)
        assert [entry.request_id for entry in page.context["entries"]] == ["its"]
        assert 'name="vendor"' not in text(page)
        assert "vendor=fake" in page.context["export_url"]


def test_a_person_is_given_access_and_loses_it(connected: Site) -> None:
    assert holders(connected, "people")["Member"] == ()
    assert holders(connected, "people")["Owner"] == ("as admin or owner",)
    key = str(connected.cast.user("member").id)
    assert notices(change(connected, "person", key)) == ["Access given."]
    assert holders(connected, "people")["Member"] == ("directly",)
    change(connected, "person", key)
    assert ServerAccess.objects.count() == 1
    assert "You can use Fake: directly." in text(connected.cast.client("member").get(connected.path(VENDOR, "fake")))
    assert notices(change(connected, "person", key, gives=False)) == ["Access removed."]
    assert not ServerAccess.objects.exists()


def test_a_team_gives_access_to_its_members(connected: Site) -> None:
    team = Team.objects.create(organization=connected.cast.org, name="Night shift")
    TeamMembership.objects.create(team=team, membership=member(connected))
    change(connected, "team", str(team.pk))
    assert holders(connected, "teams") == {"Night shift": ("directly",)}
    assert holders(connected, "people")["Member"] == ("through team Night shift",)


def test_an_agent_is_given_access_and_loses_it(connected: Site) -> None:
    client = connected.tenant.client
    assert holders(connected, "agents") == {client.name: ("can use all vendors",)}
    client.restricted = True
    client.save()
    assert holders(connected, "agents") == {client.name: ()}
    change(connected, "agent", client.client_id)
    assert holders(connected, "agents") == {client.name: ("directly",)}
    change(connected, "agent", client.client_id, gives=False)
    assert not ServiceClientVendor.objects.exists()
    connect(
        connected.cast.org,
        connected.cast.user("owner"),
        scope=CredentialScope.SERVICE_CLIENT,
        more={"service_client": client},
    )
    assert holders(connected, "agents") == {client.name: ("own credentials",)}


@pytest.mark.parametrize("who", ["member", "other_owner", "stranger", "nobody"])
def test_only_admins_of_the_organization_change_access(connected: Site, who: str) -> None:
    change(connected, "person", str(connected.cast.user("member").id), who=who)
    assert not ServerAccess.objects.exists()


@pytest.mark.parametrize(
    ("form", "status"),
    [
        ({"kind": "person", "key": "x", "give": "1"}, 404),
        ({"kind": "agent", "key": "svc_unknown", "give": "1"}, 404),
        ({"kind": "robot", "key": "x", "give": "1"}, 400),
        ({"kind": "person", "key": "x"}, 400),
    ],
)
def test_a_damaged_form_changes_nothing(connected: Site, form: dict[str, str], status: int) -> None:
    assert connected.owner().post(connected.path(ACCESS, "fake"), form).status_code == status
    assert not ServerAccess.objects.exists()


def test_another_organizations_person_and_team_are_not_reached(connected: Site) -> None:
    theirs = Team.objects.create(organization=connected.cast.other_org, name="Theirs")
    for kind, key in (("person", str(connected.cast.user("other_owner").id)), ("team", str(theirs.pk))):
        assert notices(change(connected, kind, key)) == ["Nothing changed."]
    assert not ServerAccess.objects.exists()
