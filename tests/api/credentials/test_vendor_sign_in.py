"""Sign-ins at a vendor with a real authorization server, and what a callback may not do. Contract: 8"""

from __future__ import annotations

import io
import itertools
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

import pytest
import time_machine
from django.core.management import call_command
from django.http import HttpResponse
from django.utils.html import escape

from credentials.connection_sealing import open_access, open_client, open_refresh
from credentials.models import Credential, VendorConnection, VendorOAuthClient, VendorRevocation, VendorSignIn
from credentials.services import vendor_revocations
from credentials.services.vendor_revocations import CLAIMED_FOR, FIRST_PAUSE, LONGEST_S, MAX_TRIES, send_revocations
from credentials.vendor_oauth.answers import Tokens, VendorOAuthFault
from gateway.lib import clock
from gateway.lib.crypto import CryptoError
from orgs.services.organizations import delete_organization
from proxy.control_plane import vendor_sign_in
from tests.factories.all_rows import rows as all_rows
from tests.factories.api import Api
from tests.factories.vendor_oauth import begin, come_back, connect_organization, connect_person, load_oauth_vendor
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)
CALLBACK = "/vendor-oauth/callback"


@pytest.fixture
def path(api: Api, oauth_vendor: OAuthVendor) -> str:
    load_oauth_vendor(oauth_vendor.mcp_url)
    return f"/api/orgs/{api.cast.org.id}/vendor-connections/signin"


def test_an_admin_connects_the_organization(api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
    browser = api.cast.client("admin")
    url = begin(browser, path)
    asked = {name: found[0] for name, found in parse_qs(urlsplit(url).query).items()}
    assert asked["code_challenge_method"] == "S256"
    assert asked["resource"] == oauth_vendor.mcp_url
    assert asked["redirect_uri"] == f"http://testserver{CALLBACK}"
    assert asked["scope"] == "read"
    answer = come_back(browser, oauth_vendor.sign_in(url))
    assert answer.status_code == 302
    assert answer["Location"] == f"/orgs/{api.cast.org.id}/vendors/signin/settings"
    [listed] = api.get("admin", "/orgs/{org}/vendor-connections")
    assert listed["vendor"] == "signin"
    assert (listed["level"], listed["status"], listed["scopes"]) == ("organization", "connected", ["read"])
    assert Credential.objects.get().id == VendorConnection.objects.get().id
    assert "vendor.connected" in api.events()
    # The registration is kept: another sign-in asks for no new one.
    registered = oauth_vendor.stats()["registered"]
    connect_organization(browser, api.cast.org.id, oauth_vendor)
    assert oauth_vendor.stats()["registered"] == registered
    assert VendorOAuthClient.objects.count() == 1
    assert VendorConnection.objects.get().revision == 2


def test_a_person_connects_for_themselves(api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
    connect_person(api.cast.client("member"), api.cast.org.id, oauth_vendor)
    [listed] = api.get("member", "/profile/vendor-connections")
    assert (listed["level"], listed["orgId"]) == ("person", str(api.cast.org.id))
    assert api.get("admin", "/profile/vendor-connections") == []
    assert not Credential.objects.exists()
    gone = f"/profile/vendor-connections/signin?org_id={api.cast.org.id}"
    assert api.refused("admin", "DELETE", gone) == (404, "not_found")
    assert api.refused("member", "DELETE", gone.replace(str(api.cast.org.id), str(api.cast.other_org.id)))[0] == 404
    assert api.send("member", "DELETE", gone).status_code == 204
    assert not VendorConnection.objects.exists()


def test_who_may_not_begin(api: Api, path: str) -> None:
    own = "/orgs/{org}/vendor-connections/signin"
    assert api.refused("member", "POST", own) == (403, "forbidden")
    assert api.refused("other_owner", "POST", own) == (404, "not_found")
    assert api.refused("nobody", "POST", own)[0] == 401
    body = {"org_id": str(api.cast.org.id)}
    assert api.refused("stranger", "POST", "/profile/vendor-connections/signin", body) == (404, "not_found")
    assert api.refused("member", "GET", "/orgs/{org}/vendor-connections") == (403, "forbidden")
    assert not VendorSignIn.objects.exists()


def test_disconnecting_ends_both_rows(api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
    connect_organization(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
    assert api.refused("other_owner", "DELETE", "/orgs/{org}/vendor-connections/signin") == (404, "not_found")
    assert VendorConnection.objects.exists()
    assert api.send("admin", "DELETE", "/orgs/{org}/vendor-connections/signin").status_code == 204
    assert not VendorConnection.objects.exists()
    assert not Credential.objects.exists()
    assert api.refused("admin", "DELETE", "/orgs/{org}/vendor-connections/signin") == (404, "not_found")


def test_a_level_that_the_vendor_does_not_offer(api: Api, oauth_vendor: OAuthVendor) -> None:
    load_oauth_vendor(oauth_vendor.mcp_url, 'connections = ["person"]')
    refused = api.refused("admin", "POST", "/orgs/{org}/vendor-connections/signin")
    assert refused == (422, "connection_not_offered")


def onward(page: HttpResponse) -> str:
    """The address that the page continues at. A browser would not follow a redirect of the form there."""
    address = page["Refresh"].removeprefix("0;url=")
    assert escape(address) in page.content.decode()
    assert page["Cache-Control"] == "no-store"
    return address


class TestCallback:
    """None of these stores anything, and the sign-in that was begun can still end well."""

    @pytest.fixture(autouse=True)
    def _begun(self, api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
        self.browser = api.cast.client("admin")
        self.address = oauth_vendor.sign_in(begin(self.browser, path))

    def test_without_a_state(self) -> None:
        assert self.browser.get(CALLBACK).status_code == 410
        assert self.browser.get(f"{CALLBACK}?code=x&state=").status_code == 410
        self._still_ends_well()

    def test_with_two_states(self) -> None:
        assert come_back(self.browser, f"{self.address}&state=other").status_code == 410
        self._still_ends_well()

    def test_of_another_person(self, api: Api) -> None:
        assert come_back(api.cast.client("owner"), self.address).status_code == 410
        assert come_back(api.cast.client("other_owner"), self.address).status_code == 410
        self._still_ends_well()

    def test_in_another_browser_of_the_person(self, api: Api) -> None:
        assert come_back(api.cast.client("admin"), self.address).status_code == 410
        self._still_ends_well()

    def test_signed_out(self, api: Api) -> None:
        assert come_back(api.cast.client("nobody"), self.address).status_code == 302
        self._still_ends_well()

    def test_twice(self) -> None:
        self._still_ends_well()
        first = bytes(VendorConnection.objects.get().sealed)
        assert come_back(self.browser, self.address).status_code == 410
        assert bytes(VendorConnection.objects.get().sealed) == first

    def test_after_ten_minutes(self) -> None:
        with time_machine.travel(clock.now() + timedelta(minutes=10), tick=False):
            assert come_back(self.browser, self.address).status_code == 410
        assert not VendorConnection.objects.exists()

    def _still_ends_well(self) -> None:
        assert not VendorConnection.objects.exists()
        assert come_back(self.browser, self.address).status_code == 302
        assert VendorConnection.objects.count() == 1


class TestAnswers:
    """Of a sign-in that the callback has taken: it is used up, and nothing is stored."""

    @pytest.fixture(autouse=True)
    def _begun(self, api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
        self.browser = api.cast.client("admin")
        self.address = oauth_vendor.sign_in(begin(self.browser, path))

    def _refused(self, address: str) -> None:
        assert come_back(self.browser, address).status_code == 502
        assert come_back(self.browser, self.address).status_code == 410
        assert not VendorConnection.objects.exists()
        assert not Credential.objects.exists()

    def test_of_another_issuer(self) -> None:
        self._refused(f"{self.address}&iss=https%3A%2F%2Fevil.example")

    def test_with_an_error(self) -> None:
        self._refused(f"{self.address}&error=access_denied")

    def test_with_an_injected_code(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        # A code of another sign-in at the same server is bound to another verifier.
        other = oauth_vendor.sign_in(
            begin(api.cast.client("owner"), f"/api/orgs/{api.cast.org.id}/vendor-connections/signin")
        )
        code = parse_qs(urlsplit(other).query)["code"][0]
        mine = parse_qs(urlsplit(self.address).query)["code"][0]
        self._refused(self.address.replace(mine, code))

    def test_of_a_person_who_was_demoted_meanwhile(self, api: Api) -> None:
        membership = api.cast.user("admin").memberships.get(organization=api.cast.org)
        membership.role = "member"
        membership.save()
        assert come_back(self.browser, self.address).status_code == 403
        assert not VendorConnection.objects.exists()

    def test_of_a_person_who_was_removed_meanwhile(self, api: Api) -> None:
        api.cast.user("admin").memberships.get(organization=api.cast.org).delete()
        assert come_back(self.browser, self.address).status_code == 410
        assert not VendorConnection.objects.exists()


def test_fewer_scopes_are_shown(api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
    load_oauth_vendor(oauth_vendor.mcp_url, 'scopes = ["read", "write"]')
    oauth_vendor.control(scopes="read")
    connect_organization(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
    [listed] = api.get("admin", "/orgs/{org}/vendor-connections")
    assert listed["scopes"] == ["read"]


def test_the_account_is_shown(api: Api, path: str, oauth_vendor: OAuthVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    exchange = vendor_sign_in.exchange_code

    def names_it(*arguments: Any, **more: Any) -> Tokens:
        answer = exchange(*arguments, **more)
        assert isinstance(answer, Tokens)
        return replace(answer, account="ana@vendor.example")

    monkeypatch.setattr(vendor_sign_in, "exchange_code", names_it)
    connect_organization(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
    [listed] = api.get("admin", "/orgs/{org}/vendor-connections")
    assert listed["account"] == "ana@vendor.example"
    page = api.cast.client("admin").get(f"/orgs/{api.cast.org.id}/vendors/signin/settings").content.decode()
    assert "ana@vendor.example" in page


class TestRevocation:
    """The vendor is told when a connection ends, whichever way it ends."""

    @pytest.fixture(autouse=True)
    def _connected(self, api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
        connect_organization(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
        connect_person(api.cast.client("member"), api.cast.org.id, oauth_vendor)
        self.vendor = oauth_vendor
        self.revoked = oauth_vendor.stats().get("grants_ended", 0)

    def _sent(self) -> int:
        """How many grants the vendor ended."""
        send_revocations()
        assert not VendorRevocation.objects.exists()
        return self.vendor.stats().get("grants_ended", 0) - self.revoked

    def test_disconnected(self, api: Api) -> None:
        api.send("admin", "DELETE", "/orgs/{org}/vendor-connections/signin")
        api.send("member", "DELETE", f"/profile/vendor-connections/signin?org_id={api.cast.org.id}")
        assert VendorRevocation.objects.count() == 2
        assert self._sent() == 2

    def test_a_removed_member(self, api: Api) -> None:
        assert api.send("admin", "DELETE", f"/orgs/{{org}}/members/{api.cast.user('member').pk}").status_code == 204
        assert self._sent() == 1
        assert VendorConnection.objects.get().membership is None

    def test_a_deleted_organization(self, api: Api) -> None:
        delete_organization(actor=api.cast.user("owner"), organization=api.cast.org)
        assert not VendorConnection.objects.exists()
        assert not VendorOAuthClient.objects.exists()
        assert self._sent() == 2

    def test_a_vendor_that_is_about_to_leave_the_catalog(self, api: Api) -> None:
        connect_person(api.cast.client("other_owner"), api.cast.other_org.id, self.vendor)
        out = io.StringIO()
        call_command("end_vendor_connections", "signin", stdout=out)
        assert out.getvalue() == "3 connections to signin; --really ends them\n"
        assert VendorConnection.objects.count() == 3
        call_command("end_vendor_connections", "other", "--really", stdout=out)
        call_command("end_vendor_connections", "signin", "--really", stdout=out)
        assert not VendorConnection.objects.exists()
        assert not Credential.objects.exists()
        assert self._sent() == 3
        assert api.events().count("vendor.connection_ended") == 2
        call_command("end_vendor_connections", "signin", "--really", stdout=out)

    def test_a_vendor_that_does_not_answer_is_asked_again(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        VendorConnection.objects.update(revocation_endpoint="http://127.0.0.1:9/revoke")
        api.send("admin", "DELETE", "/orgs/{org}/vendor-connections/signin")
        now = clock.now()
        monkeypatch.setattr(vendor_revocations.clock, "now", lambda: now)
        assert send_revocations() == 0
        waiting = VendorRevocation.objects.get()
        assert (waiting.tries, waiting.due_at) == (1, now + FIRST_PAUSE)
        VendorRevocation.objects.update(tries=MAX_TRIES - 1, due_at=now)
        send_revocations()
        assert not VendorRevocation.objects.exists()

    def test_a_vendor_that_is_away_is_asked_once_in_a_run(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = clock.now()
        monkeypatch.setattr(vendor_revocations.clock, "now", lambda: now)
        _add_waiting("away", "away", "refuses", "refuses", "broken", "broken", "works")
        asked: list[str] = []

        def send(row: VendorRevocation) -> bool:
            asked.append(row.vendor)
            if row.vendor == "away":
                raise VendorOAuthFault("It didn’t respond in time.")
            if row.vendor == "broken":
                raise CryptoError
            return row.vendor == "works"

        monkeypatch.setattr(vendor_revocations, "_send", send)
        assert send_revocations() == 1
        assert sorted(asked) == ["away", "broken", "broken", "refuses", "refuses", "works"]
        waiting = VendorRevocation.objects.order_by("tries").values_list("vendor", "tries", "due_at")
        tried = [(vendor, 1, now + FIRST_PAUSE) for vendor in ("away", "broken", "broken", "refuses", "refuses")]
        assert (waiting[0], sorted(waiting[1:])) == (("away", 0, now), tried)

    def test_a_run_ends_in_time_and_the_next_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _add_waiting("works", "works", "works")
        monkeypatch.setattr(vendor_revocations, "_send", lambda row: True)
        readings = itertools.count(step=LONGEST_S / 2)
        assert send_revocations(monotonic=lambda: next(readings)) == 1
        assert (send_revocations(), send_revocations()) == (2, 0)

    def test_runs_at_once_share_them(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        api.send("admin", "DELETE", "/orgs/{org}/vendor-connections/signin")
        api.send("member", "DELETE", f"/profile/vendor-connections/signin?org_id={api.cast.org.id}")
        sent: list[UUID] = []

        def send_while_another_runs(row: VendorRevocation) -> bool:
            sent.append(row.pk)
            if len(sent) == 1:
                assert send_revocations() == 1
            return True

        monkeypatch.setattr(vendor_revocations, "_send", send_while_another_runs)
        assert send_revocations() == 1
        assert len(set(sent)) == len(sent) == 2
        assert not VendorRevocation.objects.exists()

    def test_one_whose_run_died_is_sent_later(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        api.send("admin", "DELETE", "/orgs/{org}/vendor-connections/signin")

        def die(row: VendorRevocation) -> bool:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(vendor_revocations, "_send", die)
            with pytest.raises(KeyboardInterrupt):
                send_revocations()
        assert send_revocations() == 0
        later = clock.now() + CLAIMED_FOR
        monkeypatch.setattr(vendor_revocations.clock, "now", lambda: later)
        assert send_revocations() == 1


def _add_waiting(*vendors: str) -> None:
    now = clock.now()
    VendorRevocation.objects.bulk_create(
        VendorRevocation(vendor=vendor, key_id="k1", sealed=b"", due_at=now) for vendor in vendors
    )


def test_no_token_is_in_rows_logs_pages_or_answers(
    api: Api, path: str, oauth_vendor: OAuthVendor, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    connect_organization(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
    connect_person(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
    rows = list(VendorConnection.objects.all())
    secrets = {open_access(row) for row in rows} | {open_refresh(row) for row in rows}
    secrets |= {open_client(row).secret for row in VendorOAuthClient.objects.all()}
    assert len(secrets) == 5
    browser = api.cast.client("admin")
    shown = [
        browser.get(f"/orgs/{api.cast.org.id}/vendors/signin/settings").content.decode(),
        browser.get("/profile/connections").content.decode(),
        browser.get("/api/profile/vendor-connections").content.decode(),
        browser.get(f"/api/orgs/{api.cast.org.id}/vendor-connections").content.decode(),
        str(all_rows()),
        *capsys.readouterr(),
        caplog.text,
    ]
    assert "Connected since" in shown[0]
    assert "Connected since" in shown[1]
    for secret in secrets:
        assert secret
        assert not [text for text in shown if secret in text]


class TestPages:
    """The buttons that begin and end connections."""

    def test_the_vendors_page(self, api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
        page = f"/orgs/{api.cast.org.id}/vendors/signin/settings"
        browser = api.cast.client("admin")
        assert "Connect Sign In" in browser.get(page).content.decode()
        begun = browser.post(page)
        assert begun.status_code == 200
        answer = come_back(browser, oauth_vendor.sign_in(onward(begun)))
        assert answer["Location"] == page
        shown = browser.get(page).content.decode()
        assert "Sign in again" in shown
        assert "Disconnect Sign In" in shown
        assert api.cast.client("member").post(page).status_code == 403
        assert browser.post(f"{page}/disconnect", {"typed": "Sign In"}).status_code == 302
        assert not VendorConnection.objects.exists()

    def test_my_connections(self, api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
        page, form = "/profile/connections", {"org_id": str(api.cast.org.id), "vendor": "signin"}
        browser = api.cast.client("member")
        assert "Connect Sign In" in browser.get(page).content.decode()
        begun = browser.post(page, form)
        answer = come_back(browser, oauth_vendor.sign_in(onward(begun)))
        assert answer["Location"] == page
        assert "Sign in again" in browser.get(page).content.decode()
        assert api.cast.client("stranger").post(page, form).status_code == 404
        assert VendorConnection.objects.count() == 1
        assert browser.post(page, {**form, "disconnect": ""}).status_code == 302
        assert not VendorConnection.objects.exists()

    def test_a_vendor_that_is_away_is_said_in_words(self, api: Api) -> None:
        load_oauth_vendor("http://127.0.0.1:9/mcp")
        page = f"/orgs/{api.cast.org.id}/vendors/signin/settings"
        answer = api.cast.client("admin").post(page, follow=True)
        assert "can’t be reached" in answer.content.decode()
