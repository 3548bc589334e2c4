"""A secret is in one answer, once, and in no answer after it."""

from __future__ import annotations

import pytest
from django.http import HttpResponse
from django.test import Client as Browser

from oauth_ext.models import AgentKey, Client
from tests.api.pages.conftest import Site, hidden, key_prefix, notices, text

ONCE = "This is the only time the complete secret is shown."
ALREADY = "Already created. If you lost it, create a new one."
NEW = {"access": "all", "expires_in_days": "30", "mcp_client": "claude-code"}


def create(browser: Browser, site: Site, form_key: str | None = None, name: str = "night shift") -> HttpResponse:
    path = site.path("oauth_pages:service-client-new")
    key = hidden(browser.get(path), "form_key") if form_key is None else form_key
    return browser.post(path, {**NEW, "name": name, "form_key": key})


def shown(response: HttpResponse) -> dict[str, str]:
    values = {env: value for _, env, value in response.context["secret"]["values"]}
    assert all(value for value in values.values())
    return values


def pages(site: Site) -> list[str]:
    return [
        site.path("proxy_pages:home"),
        site.path("oauth_pages:service-clients"),
        site.path("proxy_pages:setup"),
        site.path("proxy_pages:vendors"),
        site.path("proxy_pages:vendor", "fake"),
        site.path("credentials:catalog"),
        site.path("audit_pages:request-log"),
        site.path("audit_pages:admin-log"),
        site.path("audit_pages:usage"),
        site.client_path("service-client"),
        site.client_path("service-client-access"),
        site.client_path("service-client-settings"),
        site.client_path("service-client-first-call"),
        site.client_path("agent-key"),
        site.client_path("client-secret"),
        site.client_path("service-client-delete"),
    ]


def test_a_client_secret_is_shown_once(site: Site) -> None:
    browser, path = site.owner(), site.client_path("client-secret")
    response = browser.post(path, {"form_key": hidden(browser.get(path), "form_key")})
    assert (response.status_code, response["Cache-Control"]) == (201, "no-store")
    values = shown(response)
    secret = values["GATEWAY_CLIENT_SECRET"]
    page = text(response)
    assert page.count(secret) == 1
    assert ONCE in page
    assert 'data-download-env="gateway.env"' in page
    assert values["GATEWAY_CLIENT_ID"] == site.tenant.client.client_id
    assert secret != site.tenant.client_secret
    assert not any(secret in text(browser.get(path)) for path in pages(site))
    assert ONCE not in text(browser.get(site.path("oauth_pages:service-clients")))


def test_the_key_of_a_new_agent_is_shown_once(site: Site) -> None:
    browser = site.owner()
    response = create(browser, site)
    assert (response.status_code, response["Cache-Control"]) == (201, "no-store")
    key = response.context["agent_key"]
    client = Client.objects.get(name="night shift")
    assert key.startswith(f"{key_prefix(client)}")
    assert f'value="{key}"' in text(response)
    assert "the only time the complete key is shown" in text(response)
    more = [
        site.path(f"oauth_pages:{name}", client.client_id) for name in ("service-client", "service-client-settings")
    ]
    assert not any(key in text(browser.get(path)) for path in [*pages(site), *more])
    assert AgentKey.objects.filter(client=client).count() == 1


@pytest.mark.parametrize("rotates", [False, True])
def test_an_agent_key_is_shown_once(site: Site, rotates: bool) -> None:
    browser = site.owner()
    if not rotates:
        AgentKey.objects.all().delete()
    path = site.client_path("agent-key")
    form = browser.get(path)
    assert ("You get a new key" in text(form)) is rotates
    response = browser.post(path, {"form_key": hidden(form, "form_key")})
    assert (response.status_code, response["Cache-Control"]) == (201, "no-store")
    key = shown(response)["GATEWAY_KEY"]
    assert key.startswith("cak_")
    assert key != site.tenant.agent_key
    assert text(response).count(key) == 1
    assert ("The old one no longer works" in text(response)) is rotates
    assert not any(key in text(browser.get(path)) for path in pages(site))
    assert key.startswith(str(key_prefix(site.tenant.client)))


def test_a_reload_creates_no_second_service_client(site: Site) -> None:
    browser = site.owner()
    form_key = hidden(browser.get(site.path("oauth_pages:service-client-new")), "form_key")
    assert create(browser, site, form_key).status_code == 201
    again = create(browser, site, form_key)
    assert (again.status_code, again["Location"]) == (302, site.path("oauth_pages:service-clients"))
    assert notices(browser.get(again["Location"]))[0].startswith("Already created.")
    assert Client.objects.filter(name="night shift").count() == 1


def test_a_reload_rotates_no_second_time(site: Site) -> None:
    browser, path = site.owner(), site.client_path("agent-key")
    form_key = hidden(browser.get(path), "form_key")
    assert browser.post(path, {"form_key": form_key}).status_code == 201
    prefix = key_prefix(site.tenant.client)
    again = browser.post(path, {"form_key": form_key}, follow=True)
    assert notices(again) == [ALREADY]
    assert key_prefix(site.tenant.client) == prefix


def test_a_form_key_is_good_for_its_person_only(site: Site) -> None:
    form_key = hidden(site.cast.client("admin").get(site.path("oauth_pages:service-client-new")), "form_key")
    for wrong in (form_key, "", "made-up", form_key[:-1]):
        assert create(site.owner(), site, wrong).status_code == 302
    assert not Client.objects.filter(name="night shift").exists()
    assert create(site.cast.client("admin"), site, form_key).status_code == 201


def test_a_stored_vendor_key_is_on_no_page(site: Site) -> None:
    browser = site.owner()
    path = site.path("credentials:connection", "fake")
    response = browser.post(path, {"apiKey": "key-nobody-may-read"}, follow=True)
    assert "key-nobody-may-read" not in text(response)
    assert not any("key-nobody-may-read" in text(browser.get(each)) for each in [path, *pages(site)])
    secret_field = text(browser.get(path))
    assert 'type="password"' in secret_field
    assert 'autocomplete="new-password"' in secret_field
