"""A vendor that takes either a key or a sign-in: the last one stored counts, and people's own come first."""

from __future__ import annotations

import pytest

from credentials.connection_sealing import open_access
from credentials.models import Credential, VendorConnection, VendorRevocation
from credentials.resolve import CredentialRef, resolve
from credentials.sealing import wrapped_keys
from credentials.selectors import credential_refs, refs_by_vendor
from credentials.services.vendor_revocations import send_revocations
from gateway.catalog.registry import known_vendor
from gateway.catalog.templates import FieldError
from gateway.lib import revocation_journal
from proxy.calls.open_destination import open_destination
from tests.factories.api import Api
from tests.factories.vendor_oauth import KEY_FIELDS, connect_organization, connect_person, load_oauth_vendor
from tests.vendors.servers import OAuthVendor

pytest_plugins = ("tests.vendors.fixtures",)
STORE = "/orgs/{org}/credentials/signin"


@pytest.fixture
def key(api: Api, oauth_vendor: OAuthVendor) -> str:
    """A key that the vendor knows: a token of another organization."""
    load_oauth_vendor(oauth_vendor.mcp_url, KEY_FIELDS)
    connect_organization(api.cast.client("other_owner"), api.cast.other_org.id, oauth_vendor)
    return open_access(VendorConnection.objects.get(organization=api.cast.other_org))


def connect(api: Api, vendor: OAuthVendor) -> None:
    connect_organization(api.cast.client("admin"), api.cast.org.id, vendor)


def used(api: Api) -> CredentialRef:
    """The organization's credential, as calls of an agent use it."""
    found = resolve(refs_by_vendor(api.cast.org.id)["signin"], service_client_id=None, team_ids=[])
    assert found is not None
    return found


def sent(api: Api, ref: CredentialRef) -> str:
    """The Authorization header of calls with it."""
    wrapped = wrapped_keys(api.cast.org.id)
    destination = open_destination(ref, known_vendor("signin"), wrapped, api.cast.org.id)
    _, headers = destination.open()
    return headers["Authorization"]


class TestTheKeyIsLast:
    def test_it_ends_the_sign_in_here_and_at_the_vendor(self, api: Api, key: str, oauth_vendor: OAuthVendor) -> None:
        connect(api, oauth_vendor)
        former, ended = used(api), oauth_vendor.stats().get("grants_ended", 0)
        assert api.send("admin", "POST", STORE, {"key": key}).status_code == 201
        now = used(api)
        assert (now.id, now.is_connection) == (former.id, False)
        assert now.revision > former.revision
        assert sent(api, now) == f"Bearer {key}"
        assert send_revocations() == 1
        assert oauth_vendor.stats()["grants_ended"] == ended + 1

    def test_a_refused_key_changes_nothing(self, api: Api, key: str, oauth_vendor: OAuthVendor) -> None:
        connect(api, oauth_vendor)
        assert api.refused("admin", "POST", STORE, {"key": "wrong"}) == (422, "credential_rejected")
        assert used(api).is_connection
        assert not VendorRevocation.objects.exists()

    def test_a_restore_does_not_end_the_key(
        self, api: Api, key: str, oauth_vendor: OAuthVendor, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        connect(api, oauth_vendor)
        noted: list[revocation_journal.End] = []
        monkeypatch.setattr("credentials.receivers.note", noted.append)
        api.send("admin", "POST", STORE, {"key": key})
        stored = str(used(api).id)
        assert noted == []
        api.send("admin", "DELETE", STORE)
        assert [each.id for each in noted] == [stored]


class TestTheSignInIsLast:
    def test_it_takes_the_place_of_the_key(self, api: Api, key: str, oauth_vendor: OAuthVendor) -> None:
        api.send("admin", "POST", STORE, {"key": key})
        former = used(api)
        connect(api, oauth_vendor)
        now = used(api)
        assert (now.id, now.is_connection) == (former.id, True)
        assert now.revision > former.revision
        token = open_access(VendorConnection.objects.get(organization=api.cast.org))
        assert sent(api, now) == f"Bearer {token}"
        assert key not in sent(api, now)

    def test_revisions_only_grow(self, api: Api, key: str, oauth_vendor: OAuthVendor) -> None:
        seen = []
        for _ in range(2):
            connect(api, oauth_vendor)
            seen.append(used(api).revision)
            api.send("admin", "POST", STORE, {"key": key})
            seen.append(used(api).revision)
        assert seen == sorted(set(seen))


def test_a_persons_own_sign_in_comes_before_the_key(api: Api, key: str, oauth_vendor: OAuthVendor) -> None:
    api.send("admin", "POST", STORE, {"key": key})
    connect_person(api.cast.client("member"), api.cast.org.id, oauth_vendor)
    refs = refs_by_vendor(api.cast.org.id)["signin"]
    for who, is_own in (("member", True), ("admin", False)):
        found = resolve(refs, service_client_id=None, team_ids=[], user_id=api.cast.user(who).pk)
        assert found is not None
        assert found.is_connection is is_own


def test_without_its_connection_an_emptied_credential_serves_no_call(
    api: Api, key: str, oauth_vendor: OAuthVendor
) -> None:
    connect(api, oauth_vendor)
    VendorConnection.objects.filter(organization=api.cast.org)._raw_delete("default")
    [left] = [each for each in credential_refs(api.cast.org.id) if each.vendor == "signin"]
    with pytest.raises(FieldError):
        sent(api, left)


class TestPage:
    def test_it_offers_both(self, api: Api, key: str, oauth_vendor: OAuthVendor) -> None:
        page, browser = f"/orgs/{api.cast.org.id}/vendors/signin/settings", api.cast.client("admin")
        shown = browser.get(page).content.decode()
        assert "Connect Sign In" in shown
        assert "Use a key instead" in shown
        refused = browser.post(page, {"action": "key", "key": "wrong"})
        assert refused.status_code == 422
        assert "rejected" in refused.content.decode()
        assert not Credential.objects.filter(organization=api.cast.org).exists()
        assert api.cast.client("member").post(page, {"action": "key", "key": key}).status_code == 403
        assert browser.post(page, {"action": "key", "key": key}).status_code == 302
        shown = browser.get(page).content.decode()
        assert "Calls use the organization’s key." in shown
        assert key not in shown
        assert browser.post(page).status_code == 200

    def test_the_catalog_says_so(self, api: Api, key: str) -> None:
        catalog = api.cast.client("admin").get(f"/orgs/{api.cast.org.id}/catalog").content.decode()
        assert "Sign in at the vendor, or use a key" in catalog

    def test_a_vendor_of_sign_ins_alone_takes_no_key(self, api: Api, oauth_vendor: OAuthVendor) -> None:
        load_oauth_vendor(oauth_vendor.mcp_url)
        page, browser = f"/orgs/{api.cast.org.id}/vendors/signin/settings", api.cast.client("admin")
        assert "Use a key instead" not in browser.get(page).content.decode()
        assert browser.post(page, {"action": "key", "key": "x"}).status_code == 200  # a sign-in begins
        assert not Credential.objects.exists()
