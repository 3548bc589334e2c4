"""One meaning of "connected": a credential that serves somebody, at any level. Spec: §4.1, §4.6 · D141"""

from __future__ import annotations

from typing import Any

import pytest

from credentials import selectors
from credentials.credential_scope import CredentialScope
from credentials.models import Credential
from orgs.models import TeamMembership
from proxy.control_plane.health.leader import vendors_to_probe
from proxy.control_plane.health.selectors import vendor_health
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


def connected_everywhere(api: Api) -> list[list[str]]:
    """The slugs by each place that says what is connected."""
    overview = api.cast.client("owner").get(f"/orgs/{api.cast.org.id}").context
    setup = page(api, "member", "setup")
    return [
        [each["vendorSlug"] for each in api.get("member", "/orgs/{org}/vendor-health")["vendors"]],
        [entry.vendor_slug for entry in vendor_health(api.cast.org)],
        [each["vendor"].slug for each in page(api, "owner", "connections")["connected"]],
        list(overview["vendors"]),
        sorted(vendor.slug for part in ("usable", "not_granted", "not_serving") for vendor in setup[part]),
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
        return {part: [vendor.slug for vendor in found[part]] for part in ("usable", "not_granted", "not_serving")}

    assert parts() == {"usable": [], "not_granted": ["acme"], "not_serving": []}
    grant = f"/orgs/{{org}}/members/{api.cast.user('member').id}/server-access/acme"
    assert api.send("admin", "PUT", grant).status_code == 200
    assert parts() == {"usable": [], "not_granted": [], "not_serving": ["acme"]}
    answer = api.cast.client("member").get(f"/orgs/{api.cast.org.id}/setup")
    assert "no credentials that your calls could use: Acme" in text(answer)
    TeamMembership.objects.create(team=setting.team, membership=membership)
    assert parts() == {"usable": ["acme"], "not_granted": [], "not_serving": []}
