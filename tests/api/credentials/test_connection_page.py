"""The page that connects a vendor asks the same gate as the API."""

from __future__ import annotations

import pytest

from credentials.models import Credential
from tests.factories.api import Api
from tests.factories.credentials import make_setting
from tests.factories.tenant import connect


@pytest.fixture
def path(api: Api, vendors: None) -> str:
    return f"/orgs/{api.cast.org.id}/vendors/acme/settings"


def test_a_form_connects_and_disconnects(api: Api, path: str) -> None:
    browser = api.cast.client("admin")
    assert browser.post(path, {"apiKey": "key"}).status_code == 302
    assert Credential.objects.get().vendor == "acme"
    assert browser.post(f"{path}/disconnect", {}).status_code == 302
    assert not Credential.objects.exists()


@pytest.mark.usefixtures("lapsed")
def test_a_lapsed_plan_only_disconnects(api: Api, path: str) -> None:
    connect(api.cast.org, api.cast.user("owner"), "acme", apiKey="key")
    browser = api.cast.client("admin")
    refused = browser.post(path, {"apiKey": "other"})
    assert refused.status_code == 402
    assert "active plan" in refused.content.decode()
    assert Credential.objects.get().revision == 1
    # A button that does not exist buys nothing.
    assert browser.post(path, {"apiKey": "other", "action": "Disconnect"}).status_code == 402
    assert browser.post(f"{path}/disconnect", {}).status_code == 302
    assert not Credential.objects.exists()


def test_page_and_api_share_one_limit(api: Api, path: str) -> None:
    browser = api.cast.client("admin")
    for _ in range(5):
        assert browser.post(path, {}).status_code == 422
        assert api.send("admin", "POST", "/orgs/{org}/credentials/acme", {}).status_code == 400
    refused = browser.post(path, {"apiKey": "key"})
    assert refused.status_code == 429
    assert 0 < int(refused["Retry-After"]) <= 60
    assert api.refused("admin", "POST", "/orgs/{org}/credentials/acme", {"apiKey": "key"}) == (429, "rate_limited")
    assert not Credential.objects.exists()


@pytest.mark.usefixtures("lapsed")
def test_the_agent_key_page_needs_the_entitlement_and_revokes_without(api: Api) -> None:
    setting = make_setting(api.cast)
    base = f"/orgs/{api.cast.org.id}/agents/{setting.service_client.client_id}/agent-key"
    browser = api.cast.client("admin")
    assert browser.post(base, {}).status_code == 402
    assert browser.post(base, {"action": "revoke"}).status_code in {302, 404, 422}
