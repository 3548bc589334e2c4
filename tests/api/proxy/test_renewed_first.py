"""Check, discovery and the doctor use a connection whose token has ended: they renew it first. Contract: 8"""

from __future__ import annotations

import io
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from credentials.connection_refresh import Claim, claim, renewed_now
from credentials.errors import ConnectionEnded
from credentials.models import Credential, VendorConnection
from credentials.selectors import connection_ref
from gateway.lib import clock
from proxy.control_plane.check_credential import check_again
from tests.factories.api import Api
from tests.factories.vendor_oauth import connect_organization, connect_person, load_oauth_vendor
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)
DISCOVER = "/orgs/{org}/tool-access/signin/discover"
ITEMS = "/orgs/{org}/tool-access/signin/items"


@pytest.fixture
def api(committed_api: Api, oauth_vendor: OAuthVendor) -> Api:
    """The first organization is signed in, and its token has ended."""
    load_oauth_vendor(oauth_vendor.mcp_url)
    connect_organization(committed_api.cast.client("admin"), committed_api.cast.org.id, oauth_vendor)
    make_due(oauth_vendor)
    return committed_api


def make_due(vendor: OAuthVendor) -> None:
    ended = clock.now() - timedelta(seconds=1)
    VendorConnection.objects.update(refresh_at=ended, expires_at=ended)
    vendor.end_access()


def checked_again(api: Api) -> Credential:
    return check_again(actor=api.cast.user("admin"), organization=api.cast.org, credential=Credential.objects.get())


def doctor(api: Api) -> str:
    said = io.StringIO()
    call_command("vendor_doctor", "signin", org=str(api.cast.org.id), stdout=said)
    return said.getvalue()


class TestRenewed:
    def test_by_a_check(self, api: Api) -> None:
        checked = check_again(
            actor=api.cast.user("admin"), organization=api.cast.org, credential=Credential.objects.get()
        )
        assert (checked.check_verdict, checked.check_tools) == ("validated", 3)
        assert VendorConnection.objects.get().revision == 2

    def test_by_discovery(self, api: Api) -> None:
        assert [each["name"] for each in api.get("admin", DISCOVER)["tools"]] == ["echo", "scopes", "write"]

    def test_by_the_lists_of_resources_and_prompts(self, api: Api) -> None:
        assert api.get("admin", ITEMS)["resources"] == []
        assert VendorConnection.objects.get().revision == 2

    def test_by_the_doctor(self, api: Api) -> None:
        assert "2" in doctor(api)
        assert VendorConnection.objects.get().revision == 2

    def test_by_discovery_with_ones_own_connection(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        api.send("admin", "DELETE", "/orgs/{org}/vendor-connections/signin")
        assert api.refused("admin", "GET", DISCOVER) == (403, "no_credentials")
        connect_person(api.cast.client("admin"), api.cast.org.id, oauth_vendor)
        make_due(oauth_vendor)
        assert len(api.get("admin", DISCOVER)["tools"]) == 3
        assert api.get("admin", ITEMS)["prompts"] == []
        assert api.refused("owner", "GET", ITEMS) == (403, "no_credentials")
        assert api.refused("owner", "GET", DISCOVER) == (403, "no_credentials")


class TestEnded:
    @pytest.fixture(autouse=True)
    def _ended(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        oauth_vendor.end_all()

    def test_is_said_by_all(self, api: Api) -> None:
        checked = check_again(
            actor=api.cast.user("admin"), organization=api.cast.org, credential=Credential.objects.get()
        )
        assert checked.check_verdict == "rejected"
        assert "Sign in again" in checked.check_detail
        assert api.refused("admin", "GET", DISCOVER) == (403, "no_credentials")
        with pytest.raises(CommandError, match="Sign in again"):
            doctor(api)


def test_another_process_that_renews_is_waited_for(api: Api) -> None:
    row = VendorConnection.objects.get()
    claimed = claim(row.pk, row.revision)
    assert isinstance(claimed, Claim)
    waits: list[float] = []

    def end_its_lease(seconds: float) -> None:
        waits.append(seconds)
        VendorConnection.objects.update(lease_until=clock.now())

    assert renewed_now(connection_ref(row), sleep=end_its_lease).revision == 2
    assert len(waits) == 1


def test_a_disconnected_one_is_not_used(api: Api) -> None:
    held = connection_ref(VendorConnection.objects.get())
    api.send("admin", "DELETE", "/orgs/{org}/vendor-connections/signin")
    with pytest.raises(ConnectionEnded):
        renewed_now(held)
