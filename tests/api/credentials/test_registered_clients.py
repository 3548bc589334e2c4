"""A vendor whose sign-in needs a client that an operator registers: before it is configured, and with it."""

from __future__ import annotations

import io
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.management import CommandError, call_command

from credentials.connection_sealing import open_access, open_client
from credentials.models import VendorConnection, VendorOAuthClient
from gateway.doctor import provider_checks
from gateway.doctor.verdict import Status
from oauth_ext import scopes
from oauth_ext.pages.vendor_states import vendor_states
from orgs.models import Membership
from tests.factories.api import Api
from tests.factories.vendor_oauth import KEY_FIELDS, begin, come_back, connect_organization, load_oauth_vendor
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)
ID, SECRET = "VENDOR_SIGNIN_CLIENT_ID", "VENDOR_SIGNIN_CLIENT_SECRET"
CONNECTIONS, OWN = "/orgs/{org}/vendor-connections/signin", "/profile/vendor-connections/signin"
NOTICE = "No one can sign in to Sign In yet."


@pytest.fixture
def client(api: Api, oauth_vendor: OAuthVendor) -> VendorOAuthClient:
    """A client that is registered at the vendor, through another organization's sign-in."""
    load_oauth_vendor(oauth_vendor.mcp_url)
    connect_organization(api.cast.client("other_owner"), api.cast.other_org.id, oauth_vendor)
    return VendorOAuthClient.objects.get()


@pytest.fixture
def by_hand(client: VendorOAuthClient, oauth_vendor: OAuthVendor) -> str:
    """The vendor takes sign-ins only through the operator's client. Returns the lines of its table `oauth`."""
    lines = f'issuer = "{client.issuer}"\nclient_id_env = "{ID}"\nclient_secret_env = "{SECRET}"\n'
    load_oauth_vendor(oauth_vendor.mcp_url, lines)
    return lines


def settings_page(api: Api, who: str = "admin") -> str:
    return api.cast.client(who).get(f"/orgs/{api.cast.org.id}/vendors/signin/settings").content.decode()


class TestBeforeTheClientIsConfigured:
    def test_no_sign_in_is_offered(self, api: Api, by_hand: str) -> None:
        assert next(each for each in api.get("admin", "/vendors") if each["slug"] == "signin")["signIn"] == []
        page = settings_page(api)
        assert NOTICE in page
        assert "Connect Sign In" not in page
        assert "Save rules" not in page  # saved without its box, a rule would shut people out
        catalog = api.cast.client("admin").get(f"/orgs/{api.cast.org.id}/catalog").content.decode()
        assert "An operator must register a client first" in catalog
        assert "Connect Sign In" not in api.cast.client("member").get("/profile/connections").content.decode()

    def test_a_sign_in_is_refused_and_nothing_is_registered(
        self, api: Api, by_hand: str, oauth_vendor: OAuthVendor
    ) -> None:
        before = oauth_vendor.stats()["registered"]
        assert api.refused("admin", "POST", CONNECTIONS, {}) == (422, "connection_not_offered")
        own = {"org_id": str(api.cast.org.id)}
        assert api.refused("member", "POST", OWN, own) == (422, "connection_not_offered")
        browser = api.cast.client("admin")
        said = browser.post(f"/orgs/{api.cast.org.id}/vendors/signin/settings", {}, follow=True).content.decode()
        assert "An operator of this service must register a client there first." in said
        assert oauth_vendor.stats()["registered"] == before
        assert not VendorConnection.objects.filter(organization=api.cast.org).exists()

    def test_a_key_works(self, api: Api, by_hand: str, oauth_vendor: OAuthVendor) -> None:
        load_oauth_vendor(oauth_vendor.mcp_url, by_hand + KEY_FIELDS)
        page = settings_page(api)
        assert NOTICE in page
        assert "A key works without it." in page
        assert "Use this key" in page
        key = open_access(VendorConnection.objects.get(organization=api.cast.other_org))
        assert api.send("admin", "POST", "/orgs/{org}/credentials/signin", {"key": key}).status_code == 201
        assert "Connect Sign In" not in settings_page(api)

    def test_consent_asks_an_admin_for_a_key_alone(self, api: Api, by_hand: str, oauth_vendor: OAuthVendor) -> None:
        admin = Membership.objects.get(organization=api.cast.org, user=api.cast.user("admin"))
        for more, takes_key in (("", False), (KEY_FIELDS, True)):
            load_oauth_vendor(oauth_vendor.mcp_url, by_hand + more)
            [shown] = vendor_states(admin, [scopes.for_vendor("signin")])
            assert (shown.may_connect, shown.sign_ins) == (takes_key, ())

    def test_operators_are_told_the_variables(self, api: Api, by_hand: str, monkeypatch: pytest.MonkeyPatch) -> None:
        said = io.StringIO()
        with pytest.raises(CommandError, match="1 of"):
            call_command("vendor_doctor", "signin", stdout=said)
        assert f"register one at the vendor, then set {ID}, {SECRET}" in said.getvalue()
        *_, told = provider_checks.vendors()
        assert (told.status, told.message) == (Status.OK, f"No one can sign in to Sign In. Set {ID}, {SECRET}.")
        monkeypatch.setenv(ID, "ours")
        *_, told = provider_checks.vendors()
        assert (told.status, told.message) == (Status.WARNING, f"No one can sign in to Sign In. Set {SECRET}.")


class TestWithTheClient:
    @pytest.fixture(autouse=True)
    def _configured(
        self, by_hand: str, client: VendorOAuthClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv(ID, client.client_id)
        file = tmp_path / "secret"
        file.write_text(f"{open_client(client).secret}\n")
        monkeypatch.setenv(f"{SECRET}_FILE", str(file))

    def test_people_sign_in_through_it(self, api: Api, client: VendorOAuthClient, oauth_vendor: OAuthVendor) -> None:
        assert NOTICE not in settings_page(api)
        before, browser = oauth_vendor.stats()["registered"], api.cast.client("admin")
        url = begin(browser, api.url(CONNECTIONS))
        assert parse_qs(urlsplit(url).query)["client_id"] == [client.client_id]
        assert come_back(browser, oauth_vendor.sign_in(url)).status_code == 302
        assert VendorConnection.objects.get(organization=api.cast.org).client_id == client.client_id
        assert oauth_vendor.stats()["registered"] == before
        said = io.StringIO()
        call_command("vendor_doctor", "signin", stdout=said)
        assert client.issuer in said.getvalue()
        assert "registered by hand" in said.getvalue()

    def test_a_connection_outlives_the_configuration(
        self, api: Api, oauth_vendor: OAuthVendor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connect_organization(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
        monkeypatch.setenv(f"{SECRET}_FILE", "/nowhere")
        page = settings_page(api)
        assert NOTICE in page
        assert "Sign in again" not in page
        assert "Disconnect Sign In" in page
