"""Attacks on a sign-in at a vendor, and changes in mid-flow. Contract: 8"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from django.http import HttpRequest

from credentials.connection_refresh import Claim, ask, claim, settle
from credentials.models import VendorConnection, VendorRevocation, VendorSignIn, VendorSignInRules
from credentials.services import vendor_sign_ins
from credentials.services.vendor_connections import end_own_connection
from credentials.services.vendor_revocations import send_revocations
from credentials.vendor_asking import ASK, ask_vendor_server
from credentials.vendor_oauth.answers import Refused, Tokens, VendorOAuthFault, protected_resource
from credentials.vendor_oauth.requests import refresh
from gateway.lib import clock
from gateway.web import sign_in_refresh
from orgs.models import Membership
from proxy.control_plane import vendor_sign_in
from tests.factories.api import Api
from tests.factories.races import refusals_at_once
from tests.factories.vendor_oauth import begin, come_back, connect_person, load_oauth_vendor
from tests.fakes.raw_vendor import OK, raw_vendor, says
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)
CALLBACK = "/vendor-oauth/callback"


@pytest.fixture
def path(api: Api, oauth_vendor: OAuthVendor) -> str:
    load_oauth_vendor(oauth_vendor.mcp_url)
    return f"/api/orgs/{api.cast.org.id}/vendor-connections/signin"


class TestDoubledParameters:
    """One of two values would be the wrong one."""

    @pytest.mark.parametrize("more", ["iss=https%3A%2F%2Fa.example&iss={iss}", "error=a&error=b", "code=x"])
    def test_is_refused(self, api: Api, path: str, oauth_vendor: OAuthVendor, more: str) -> None:
        browser = api.cast.client("admin")
        address = oauth_vendor.sign_in(begin(browser, path))
        answer = come_back(browser, f"{address}&{more.format(iss=oauth_vendor.server.origin)}")
        assert answer.status_code == 502
        assert not VendorConnection.objects.exists()
        assert come_back(browser, address).status_code == 410


def test_a_vendor_may_not_send_people_to_the_sign_in_of_another(
    api: Api, path: str, oauth_vendor: OAuthVendor, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, found = "https://login.other.example", vendor_sign_in.discover

    def altered(*arguments: Any, **more: Any) -> Any:
        honest = found(*arguments, **more)
        return replace(honest, server=replace(honest.server, authorization_endpoint=f"{other}/authorize"))

    monkeypatch.setattr(vendor_sign_in, "discover", altered)
    VendorSignInRules.objects.create(organization=api.cast.other_org, vendor="other", issuer=other)
    begin(api.cast.client("admin"), path)  # nothing of another organization is asked
    VendorSignInRules.objects.create(organization=api.cast.org, vendor="other", issuer=other)
    refused = api.refused("admin", "POST", "/orgs/{org}/vendor-connections/signin")
    assert refused == (502, "vendor_sign_in_failed")
    assert VendorSignIn.objects.count() == 1


async def test_a_megabyte_of_metadata_and_a_redirect_lead_nowhere() -> None:
    size = 1024 * 1024
    large = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"x" * size
    async with raw_vendor(says(large)) as big, raw_vendor(says(OK)) as target:
        with pytest.raises(VendorOAuthFault, match="too large"):
            await asyncio.to_thread(ask_vendor_server, "GET", big.url)
        moved = b"HTTP/1.1 307 Moved\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % target.url.encode()
        async with raw_vendor(says(moved)) as away:
            answer = await asyncio.to_thread(ask_vendor_server, "POST", away.url, form={"code": "secret"})
        assert answer.status == 307
        assert not target.connections
        with pytest.raises(VendorOAuthFault):
            protected_resource(answer, target.url)


class TestSignedOut:
    """The code travels no further: neither into the sign-in's address nor into the session."""

    def test_the_way_to_the_sign_in(self, api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
        address = oauth_vendor.sign_in(begin(api.cast.client("admin"), path))
        query = parse_qs(urlsplit(address).query)
        browser = api.cast.client("nobody")
        answer = come_back(browser, address)
        assert answer.status_code == 302
        for secret in (query["code"][0], query["state"][0]):
            assert secret not in answer["Location"]
            assert secret not in str(dict(browser.session))
        assert "%2Fprofile%2Fconnections" in answer["Location"] or "/profile/connections" in answer["Location"]

    def test_the_confirmation_of_a_session(self) -> None:
        request = HttpRequest()
        request.META["QUERY_STRING"] = "code=secret"
        request.path = request.path_info = CALLBACK
        assert sign_in_refresh._next_page(request) == "/profile/connections"
        request.path = request.path_info = "/profile"
        assert sign_in_refresh._next_page(request) == "/profile?code=secret"


class TestGivenBack:
    """Tokens that a vendor issued and that are kept nowhere end at the vendor."""

    @pytest.mark.parametrize("level", ["organization", "person"])
    def test_the_person_is_removed_while_the_vendor_answers(
        self, api: Api, path: str, oauth_vendor: OAuthVendor, monkeypatch: pytest.MonkeyPatch, level: str
    ) -> None:
        browser, member = api.cast.client("admin"), Membership.objects.filter(user=api.cast.user("admin"))
        own = "/api/profile/vendor-connections/signin", {"org_id": str(api.cast.org.id)}
        address = oauth_vendor.sign_in(begin(browser, path) if level == "organization" else begin(browser, *own))
        self._while_it_answers(monkeypatch, member.delete)
        before = oauth_vendor.stats().get("grants_ended", 0)
        assert come_back(browser, address).status_code == 404
        assert not VendorConnection.objects.exists()
        assert send_revocations() == 1
        assert oauth_vendor.stats()["grants_ended"] == before + 1

    def test_an_admin_is_demoted_while_the_vendor_answers(
        self, api: Api, path: str, oauth_vendor: OAuthVendor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        browser = api.cast.client("admin")
        address = oauth_vendor.sign_in(begin(browser, path))
        member = Membership.objects.filter(user=api.cast.user("admin"), organization=api.cast.org)
        self._while_it_answers(monkeypatch, lambda: member.update(role="member"))
        assert come_back(browser, address).status_code == 403
        assert VendorRevocation.objects.count() == 1

    def test_the_connection_ends_while_it_is_renewed(self, api: Api, path: str, oauth_vendor: OAuthVendor) -> None:
        connect_person(api.cast.client("member"), api.cast.org.id, oauth_vendor)
        VendorConnection.objects.update(refresh_at=clock.now(), expires_at=clock.now())
        row = VendorConnection.objects.select_related("membership").get()
        claimed = claim(row.pk, row.revision)
        assert isinstance(claimed, Claim)
        answer = ask(claimed)
        assert isinstance(answer, Tokens)
        assert row.membership is not None
        end_own_connection(membership=row.membership, vendor="signin")
        assert settle(claimed, answer) is None
        assert VendorRevocation.objects.count() == 2
        send_revocations()
        again = refresh(
            claimed.endpoint, claimed.client, token=answer.refresh_token, resource=claimed.resource, ask=ASK
        )
        assert again == Refused("invalid_grant")

    def _while_it_answers(self, monkeypatch: pytest.MonkeyPatch, change: Callable[[], object]) -> None:
        exchange = vendor_sign_in.exchange_code

        def answers(*arguments: Any, **more: Any) -> Tokens | Refused:
            answer = exchange(*arguments, **more)
            change()
            return answer

        monkeypatch.setattr(vendor_sign_in, "exchange_code", answers)


def test_of_fifty_callbacks_one_takes_the_sign_in(committed_api: Api, oauth_vendor: OAuthVendor) -> None:
    cast = committed_api.cast
    load_oauth_vendor(oauth_vendor.mcp_url)
    browser = cast.client("admin")
    address = begin(browser, f"/api/orgs/{cast.org.id}/vendor-connections/signin")
    state = parse_qs(urlsplit(address).query)["state"][0]
    key, actor = browser.session.session_key or "", cast.user("admin")
    codes = refusals_at_once(
        *[lambda: vendor_sign_ins.take(actor=actor, session_key=key, state=state)] * 50,
    )
    assert Counter(codes) == {"": 1, "vendor_sign_in_gone": 49}
    assert not VendorSignIn.objects.exists()
