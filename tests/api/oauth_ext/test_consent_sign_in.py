"""Connecting a vendor that wants a sign-in from the consent page, and coming back to it. Contract: 8"""

from __future__ import annotations

import pytest
from django.http import HttpResponse

from credentials.models import Credential, VendorConnection, VendorSignInRules
from oauth_ext.models import Grant
from tests.api.oauth_ext.flow import Flow, make_flow
from tests.factories.cast import Cast
from tests.factories.vendor_oauth import come_back, connect_person, load_oauth_vendor
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)
OWN, SHARED = "Connect Sign In with your own account", "Connect Sign In for Acme"


@pytest.fixture(autouse=True)
def _vendor(oauth_vendor: OAuthVendor, cast: Cast) -> None:
    load_oauth_vendor(oauth_vendor.mcp_url)
    cast.org.default_server_access = "all"
    cast.org.save()


def press(flow: Flow, cast: Cast, level: str, action: str = "sign-in") -> HttpResponse:
    form = {"action": action, "organization": str(cast.org.id), "vendor": "signin", "level": level}
    return flow.browser.post(flow.ask(scope="mcp:signin"), form)  # type: ignore[return-value]


@pytest.mark.parametrize(("who", "level"), [("member", "person"), ("admin", "person"), ("admin", "organization")])
def test_a_person_connects_and_comes_back(cast: Cast, oauth_vendor: OAuthVendor, who: str, level: str) -> None:
    flow = make_flow(cast, who)
    onward = press(flow, cast, level)
    assert onward.status_code == 200
    back = come_back(flow.browser, oauth_vendor.sign_in(onward["Refresh"].removeprefix("0;url=")))
    assert back["Location"].startswith("/oauth/authorize/consent?request=")
    shown = flow.browser.get(back["Location"]).content.decode()
    assert OWN not in shown
    assert "Sign In is connected." in shown
    assert VendorConnection.objects.get().scope.value == level
    assert not Grant.objects.exists(), "the app has nothing yet"


def test_the_buttons_are_those_of_the_persons_rights(cast: Cast) -> None:
    found = {}
    for who in ("member", "admin"):
        flow = make_flow(cast, who)
        shown = flow.browser.get(flow.ask(scope="mcp:signin")).content.decode()
        found[who] = [button for button in (OWN, SHARED) if button in shown]
    assert found == {"member": [OWN], "admin": [OWN, SHARED]}


def test_a_member_may_not_connect_the_organization(cast: Cast) -> None:
    assert press(make_flow(cast, "member"), cast, "organization").status_code == 400
    VendorSignInRules.objects.create(organization=cast.org, vendor="signin", people_may_connect=False)
    assert press(make_flow(cast, "member"), cast, "person").status_code == 400
    assert not VendorConnection.objects.exists()


def test_no_one_stores_credentials_without_a_sign_in(cast: Cast) -> None:
    assert press(make_flow(cast, "admin"), cast, "organization", action="connect").status_code == 400
    path = f"/api/orgs/{cast.org.id}/credentials/signin"
    answer = cast.client("admin").post(path, {}, content_type="application/json")
    assert (answer.status_code, answer.json()["error"]) == (422, "connection_not_offered")
    assert not Credential.objects.exists()


def test_another_persons_connection_is_not_theirs(cast: Cast, oauth_vendor: OAuthVendor) -> None:
    connect_person(cast.client("admin"), cast.org.id, oauth_vendor)
    for who, works in (("admin", True), ("member", False)):
        flow = make_flow(cast, who)
        assert (OWN not in flow.browser.get(flow.ask(scope="mcp:signin")).content.decode()) is works
