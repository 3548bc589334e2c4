"""The page that connects a vendor asks the same gate as the API."""

from __future__ import annotations

import re

import pytest

from credentials.models import Credential
from tests.api.oauth_ext.flow import make_flow
from tests.factories.api import Api
from tests.factories.catalog_text import load_catalog
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


CHOSEN_BY_THE_PERSON = """
[[vendor]]
slug = "sites"
name = "Sites"
url = "https://{region}.vendor.example/mcp"
tool_prefix = "sites"
docs_url = "https://vendor.example/docs"
[[vendor.headers]]
name = "X-Api-Key"
value = "{apiKey}"
[[vendor.fields]]
name = "region"
label = "Region"
secret = false
required = true
options = ["us", "eu"]
[[vendor.fields]]
name = "apiKey"
label = "API key"
secret = true
required = true
"""


def chosen(page: str) -> tuple[list[str], str]:
    """The options of the one choice in a page, and the one that is selected."""
    (choice,) = re.findall(r'<select[^>]*name="[^"]*region"[^>]*>(.*?)</select>', page, re.DOTALL)
    options = re.findall(r'<option value="([^"]*)"([^>]*)>', choice)
    selected = [value for value, attributes in options if "selected" in attributes]
    return [value for value, _ in options], selected[0] if selected else options[0][0]


def test_a_required_choice_without_a_default_is_the_persons(api: Api) -> None:
    load_catalog(CHOSEN_BY_THE_PERSON, "test catalog")
    browser, path = api.cast.client("admin"), f"/orgs/{api.cast.org.id}/vendors/sites/settings"
    assert chosen(browser.get(path).content.decode()) == (["", "us", "eu"], "")
    unchosen = browser.post(path, {"region": "", "apiKey": "key"})
    assert (unchosen.status_code, chosen(unchosen.content.decode())[1]) == (422, "")
    assert chosen(browser.post(path, {"region": "eu", "apiKey": ""}).content.decode())[1] == "eu"
    assert not Credential.objects.exists()
    flow = make_flow(api.cast, "admin")
    page = flow.ask(scope="mcp:sites")
    assert chosen(flow.browser.get(page).content.decode()) == (["", "us", "eu"], "")
    again = flow.answer(page, "connect", vendor="sites", **{"field-region": "eu", "field-apiKey": ""})
    assert (again.status_code, chosen(again.content.decode())[1]) == (400, "eu")
