"""An organization's rules for sign-ins at a vendor: people, scopes, the authorization server. Contract: 8"""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from audit.models import AdminAuditEntry
from credentials.models import VendorConnection, VendorRevocation, VendorSignInRules
from credentials.selectors import people_vendor_slugs, people_vendors
from credentials.services.vendor_revocations import send_revocations
from orgs.models import AccessRequest
from orgs.selectors import count_of_waiting_requests
from tests.factories.api import Api
from tests.factories.vendor_oauth import begin, come_back, connect_organization, connect_person, load_oauth_vendor
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)
RULES = "/orgs/{org}/vendor-connections/signin/rules"
CLOSED = {"peopleMayConnect": False}


@pytest.fixture(autouse=True)
def _vendor(api: Api, oauth_vendor: OAuthVendor) -> None:
    load_oauth_vendor(oauth_vendor.mcp_url)


def own(api: Api, who: str, org: str = "org") -> tuple[int, str]:
    body = {"org_id": str(getattr(api.cast, org).id)}
    answer = api.send(who, "POST", "/profile/vendor-connections/signin", body)
    return answer.status_code, answer.json().get("error", "")


class TestPeople:
    """An admin turns personal connections off: those there are end, here and at the vendor."""

    def test_they_end_and_none_is_made(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        connect_organization(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
        for who in ("admin", "member"):
            connect_person(api.cast.client(who), api.cast.org.id, oauth_vendor)
        connect_person(api.cast.client("other_owner"), api.cast.other_org.id, oauth_vendor)
        before = oauth_vendor.stats().get("grants_ended", 0)
        answer = api.send("admin", "PUT", RULES, CLOSED)
        assert answer.status_code == 200
        assert answer.json()["peopleMayConnect"] is False
        left = VendorConnection.objects.select_related("membership__organization")
        assert [row.membership and row.membership.organization for row in left.order_by("connected_at")] == [
            None,
            api.cast.other_org,
        ]
        assert send_revocations() == 2
        assert oauth_vendor.stats()["grants_ended"] == before + 2
        assert own(api, "member") == (422, "connection_not_offered")
        assert own(api, "other_owner", "other_org")[0] == 201
        row = AdminAuditEntry.objects.get(event_type="vendor.sign_in_rules_changed")
        assert (row.metadata["people_may_connect"], row.metadata["ended"]) == (False, 2)
        assert api.events().count("vendor.connection_ended") == 2
        assert "Connect Sign In" not in api.cast.client("member").get("/profile/connections").content.decode()
        api.send("admin", "PUT", RULES, {"peopleMayConnect": True})
        assert own(api, "member")[0] == 201

    def test_a_sign_in_that_was_begun_ends_nowhere(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        browser = api.cast.client("member")
        url = begin(browser, "/api/profile/vendor-connections/signin", {"org_id": str(api.cast.org.id)})
        shared = oauth_vendor.sign_in(begin(api.cast.client("admin"), api.url(RULES.removesuffix("/rules"))))
        api.send("admin", "PUT", RULES, CLOSED)
        assert come_back(browser, oauth_vendor.sign_in(url)).status_code == 410
        assert come_back(api.cast.client("admin"), shared).status_code == 410, "another browser"
        assert not VendorConnection.objects.exists()

    def test_forbidden_while_the_vendor_answers(
        self, api: Api, oauth_vendor: OAuthVendor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from proxy.control_plane import vendor_sign_in

        browser, exchange = api.cast.client("member"), vendor_sign_in.exchange_code

        def answers(*arguments: Any, **more: Any) -> Any:
            found = exchange(*arguments, **more)
            VendorSignInRules.objects.create(organization=api.cast.org, vendor="signin", people_may_connect=False)
            return found

        monkeypatch.setattr(vendor_sign_in, "exchange_code", answers)
        url = begin(browser, "/api/profile/vendor-connections/signin", {"org_id": str(api.cast.org.id)})
        assert come_back(browser, oauth_vendor.sign_in(url)).status_code == 422
        assert not VendorConnection.objects.exists()
        assert VendorRevocation.objects.count() == 1

    def test_by_the_page(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        connect_person(api.cast.client("member"), api.cast.org.id, oauth_vendor)
        page = f"/orgs/{api.cast.org.id}/vendors/signin/settings"
        assert "Members may connect their own accounts" in api.cast.client("admin").get(page).content.decode()
        assert api.cast.client("member").post(page, {"action": "rules"}).status_code == 403
        assert VendorConnection.objects.count() == 1
        assert api.cast.client("admin").post(page, {"action": "rules", "scopes": "read"}).status_code == 302
        assert not VendorConnection.objects.exists()
        rules = VendorSignInRules.objects.get(organization=api.cast.org)
        assert (rules.people_may_connect, rules.scopes) == (False, "read")


class TestWho:
    @pytest.mark.parametrize(
        ("who", "status"), [("owner", 200), ("admin", 200), ("member", 403), ("other_owner", 404), ("nobody", 401)]
    )
    def test_may_change_the_rules(self, api: Api, who: str, status: int) -> None:
        assert api.send(who, "PUT", RULES, CLOSED).status_code == status
        assert api.send(who, "GET", RULES).status_code == status
        assert VendorSignInRules.objects.exists() is (status == 200)

    def test_faults_are_named(self, api: Api) -> None:
        assert api.faults("admin", "PUT", RULES, {"scopes": ["read"]}) == {"peopleMayConnect"}
        assert api.send("admin", "PUT", RULES, {**CLOSED, "scopes": ["two words"]}).status_code == 400
        assert not VendorSignInRules.objects.exists()


class TestScopes:
    def test_only_those_of_the_rules_are_asked_for(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        load_oauth_vendor(oauth_vendor.mcp_url, 'scopes = ["read", "write"]')
        path = f"/api/orgs/{api.cast.org.id}/vendor-connections/signin"
        browser = api.cast.client("admin")
        assert self._asked(begin(browser, path)) == ["read", "write"]
        api.send("admin", "PUT", RULES, {"peopleMayConnect": True, "scopes": ["read", "admin"]})
        assert self._asked(begin(browser, path)) == ["read"]
        connect_organization(browser, api.cast.org.id, oauth_vendor)
        assert VendorConnection.objects.get().scope_list == ["read"]
        asked = "asks for these scopes: <code>read</code>"
        for who, page in (
            ("admin", f"/orgs/{api.cast.org.id}/vendors/signin/settings"),
            ("member", "/profile/connections"),
        ):
            shown = " ".join(api.cast.client(who).get(page).content.decode().split())
            assert asked in shown
            assert "<code>write</code>" not in shown

    def _asked(self, address: str) -> list[str]:
        return parse_qs(urlsplit(address).query)["scope"][0].split()


def test_requests_for_a_vendor_that_only_people_connect_are_counted(api: Api, oauth_vendor: OAuthVendor) -> None:
    load_oauth_vendor(oauth_vendor.mcp_url, 'connections = ["person"]')
    member = api.cast.user("member").memberships.get(organization=api.cast.org)
    AccessRequest.objects.create(organization=api.cast.org, membership=member, vendor="signin")
    assert count_of_waiting_requests(api.cast.org, people_vendor_slugs(api.cast.org)) == 0
    connect_person(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
    assert people_vendors(api.cast.org) == ["signin"]
    assert count_of_waiting_requests(api.cast.org, people_vendor_slugs(api.cast.org)) == 1
    assert count_of_waiting_requests(api.cast.other_org, people_vendor_slugs(api.cast.other_org)) == 0


class TestServer:
    """People are sent to the authorization server of the first connection until an admin agrees to another one."""

    def test_another_one_needs_an_admin(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        connect_person(api.cast.client("member"), api.cast.org.id, oauth_vendor)
        rules = VendorSignInRules.objects.get()
        assert rules.issuer.startswith(oauth_vendor.server.origin)
        VendorSignInRules.objects.update(issuer="https://former.example")
        assert own(api, "member") == (409, "vendor_server_changed")
        assert api.refused("admin", "POST", RULES.removesuffix("/rules")) == (409, "vendor_server_changed")
        answer = api.send("admin", "PUT", RULES, {"peopleMayConnect": True, "acceptAnyServer": True})
        assert answer.json()["issuer"] == ""
        assert own(api, "member")[0] == 201
        row = AdminAuditEntry.objects.get(event_type="vendor.sign_in_rules_changed")
        assert row.metadata["former_issuer"] == "https://former.example"

    def test_a_sign_in_that_was_begun_before_the_first_connection(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        """Two people were sent to different servers: the first one to come back decides."""
        browser = api.cast.client("member")
        url = begin(browser, "/api/profile/vendor-connections/signin", {"org_id": str(api.cast.org.id)})
        VendorSignInRules.objects.create(organization=api.cast.org, vendor="signin", issuer="https://former.example")
        assert come_back(browser, oauth_vendor.sign_in(url)).status_code == 409
        assert not VendorConnection.objects.exists()
        assert VendorRevocation.objects.count() == 1
