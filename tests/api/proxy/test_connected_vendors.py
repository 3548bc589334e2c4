"""One meaning of "connected": a credential that serves somebody, at any level. Spec: §4.1, §4.6 · D141"""

from __future__ import annotations

from typing import Any

import pytest

from credentials import selectors
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from credentials.selectors import credential_summaries
from orgs.models import Membership, TeamMembership
from proxy.control_plane.health.leader import vendors_to_probe
from proxy.control_plane.health.selectors import vendor_health
from proxy.control_plane.own_vendors import own_vendors
from tests.api.pages.conftest import text
from tests.factories.api import Api
from tests.factories.catalog import load_vendors
from tests.factories.credentials import Setting, make_setting

LEVELS = [
    (CredentialScope.ORGANIZATION, {}),
    (CredentialScope.TEAM, {}),
    (CredentialScope.NAMED_KEY, {"team": "team"}),
    (CredentialScope.SERVICE_CLIENT, {}),
]


@pytest.fixture
def setting(api: Api) -> Setting:
    load_vendors("acme", "globex")
    return make_setting(api.cast)


def store(setting: Setting, scope: CredentialScope, more: dict[str, str]) -> Credential:
    return setting.store(scope, **{name: getattr(setting, row) for name, row in more.items()})


def page(api: Api, who: str, name: str) -> Any:
    return api.cast.client(who).get(f"/orgs/{api.cast.org.id}/{name}").context


def setup_parts(context: Any) -> dict[str, list[str]]:
    """The slugs by part of My setup."""
    askable = [vendor.slug for vendor, _ in context["askable"]]
    parts = {part: [vendor.slug for vendor in context[part]] for part in ("usable", "not_serving")}
    return {**parts, "askable": askable}


def connected_everywhere(api: Api) -> list[list[str]]:
    """The slugs by each place that says what is connected."""
    setup = page(api, "member", "setup")
    member = Membership.objects.get(organization=api.cast.org, user=api.cast.user("member"))
    return [
        [each["vendorSlug"] for each in api.get("member", "/orgs/{org}/vendor-health")["vendors"]],
        [entry.vendor_slug for entry in vendor_health(api.cast.org)],
        [row.health.vendor_slug for row in page(api, "owner", "vendors")["rows"]],
        own_vendors(member, credential_summaries(api.cast.org)).connected,
        sorted(slug for slugs in setup_parts(setup).values() for slug in slugs),
        [vendor.slug for vendor in vendors_to_probe()],
    ]


@pytest.mark.parametrize(("scope", "more"), LEVELS, ids=[scope.value for scope, _ in LEVELS])
def test_a_credential_at_any_level_connects(
    api: Api, setting: Setting, scope: CredentialScope, more: dict[str, str]
) -> None:
    store(setting, scope, more)
    assert connected_everywhere(api) == [["acme"]] * 6
    own = ["acme"] if scope is CredentialScope.ORGANIZATION else []
    assert api.get("member", "/orgs/{org}/credentials") == own, "the level that POST and DELETE act on"
    assert selectors.connected_vendors(api.cast.other_org) == []


def test_a_named_key_of_no_team_serves_nobody_and_connects_nothing(api: Api, setting: Setting) -> None:
    setting.store(CredentialScope.NAMED_KEY)
    assert connected_everywhere(api) == [[]] * 6
    assert selectors.people_vendors(api.cast.org) == []


def test_nothing_stored_is_nothing_connected(api: Api, setting: Setting) -> None:
    assert connected_everywhere(api) == [[]] * 6


def test_my_setup_says_what_a_person_can_call_and_why_not(api: Api, setting: Setting) -> None:
    setting.store(CredentialScope.TEAM)
    membership = api.cast.user("member").memberships.get()

    def parts() -> dict[str, list[str]]:
        found = page(api, "member", "setup")
        return setup_parts(found)

    assert parts() == {"usable": [], "askable": ["acme"], "not_serving": []}
    grant = f"/orgs/{{org}}/members/{api.cast.user('member').id}/server-access/acme"
    assert api.send("admin", "PUT", grant).status_code == 200
    assert parts() == {"usable": [], "askable": [], "not_serving": ["acme"]}
    answer = api.cast.client("member").get(f"/orgs/{api.cast.org.id}/setup")
    assert "Connected only for teams or agents: Acme" in text(answer)
    TeamMembership.objects.create(team=setting.team, membership=membership)
    assert parts() == {"usable": ["acme"], "askable": [], "not_serving": []}
